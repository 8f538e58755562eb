"""The user's functions, by the type of task they are for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Self

import attrs

from ...domain.limits import MAX_NAMES_PER_LEASE, NAME_PATTERN
from .context import TaskContext

_NAME: Final = re.compile(NAME_PATTERN)
_POSITIONAL: Final = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
}


@attrs.frozen(kw_only=True)
class Handler:
    """A function for one type of task."""

    type: str
    function: Callable[..., Any]
    is_async: bool
    takes_context: bool

    @classmethod
    def of(cls, type_: str, function: Callable[..., Any]) -> Self:
        """
        Return the handler that `function` makes.

        Raises:
            TypeError: it cannot be called with a payload, or with a payload and a context.
            ValueError: `type_` is no name.
        """
        if not isinstance(type_, str):
            raise TypeError(f'name the task\'s type: @worker.task("..."), not {type_!r}')
        if not _NAME.fullmatch(type_):
            raise ValueError(
                f"a task type must be 1 to 100 of the characters A-Z a-z 0-9 . _ : -, not {type_!r}"
            )
        if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
            raise TypeError(f"the handler of {type_} must not be a generator function")
        return cls(
            type=type_,
            function=function,
            is_async=_is(inspect.iscoroutinefunction, function),
            takes_context=_takes_context(type_, function),
        )

    def call(self, payload: Any, context: TaskContext) -> Any:
        """Call the function; of an `async def` this gives the coroutine."""
        return self.function(payload, context) if self.takes_context else self.function(payload)


class Handlers(Mapping[str, Handler]):
    """The handlers of one worker, by type."""

    def __init__(self) -> None:
        self._by_type: dict[str, Handler] = {}

    def __getitem__(self, type_: str) -> Handler:
        """Return the handler of a type."""
        return self._by_type[type_]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the types, in the order of registration."""
        return iter(self._by_type)

    def __len__(self) -> int:
        """Return how many types have a handler."""
        return len(self._by_type)

    def add(self, type_: str, function: Callable[..., Any]) -> None:
        """
        Register a function.

        Raises:
            TypeError, ValueError: as for `Handler.of`; the type has a handler already;
                there are 100 types.
        """
        handler = Handler.of(type_, function)
        if type_ in self._by_type:
            raise ValueError(f"the task type {type_} has a handler already")
        if len(self._by_type) >= MAX_NAMES_PER_LEASE:
            raise ValueError(f"a worker has handlers for at most {MAX_NAMES_PER_LEASE} task types")
        self._by_type[type_] = handler


def _is(test: Callable[[object], bool], function: Callable[..., Any]) -> bool:
    # A callable object is what its `__call__` is.
    return test(function) or test(getattr(function, "__call__", None))  # noqa: B004


def _takes_context(type_: str, function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"the handler of {type_} has no signature that can be read") from None
    places = [p for p in parameters if p.kind in _POSITIONAL]
    rest = [p for p in parameters if p.kind not in _POSITIONAL]
    fits = (
        1 <= len(places) <= 2  # noqa: PLR2004  the payload, the context
        and all(p.default is p.empty for p in places[1:])
        and all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in rest)
    )
    if not fits:
        raise TypeError(
            f"the handler of {type_} must take (payload) or (payload, ctx);"
            " anything else must be keyword-only and have a default"
        )
    return len(places) > 1
