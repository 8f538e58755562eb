"""Keyword arguments that are typed as a TypedDict, held to it also where nobody checks types."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def refuse_unknown(given: Iterable[str], options: type) -> None:
    """
    Refuse names that the TypedDict `options` has not, as Python does for other functions.

    Raises:
        TypeError: naming the first that is unknown and the known one that is nearest.
    """
    known = options.__annotations__
    for name in given:
        if name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"got an unexpected keyword argument {name!r}{hint}")
