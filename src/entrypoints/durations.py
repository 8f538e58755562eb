"""Spans of time as people write them (`90`, `1.5`, `500ms`, `5m`, `2h`, `1d`) and programs do."""

from __future__ import annotations

import math
import re
from datetime import timedelta
from typing import Final

_WRITTEN: Final = re.compile(r"(?P<number>[0-9]{1,12}(?:\.[0-9]{1,6})?)\s*(?P<unit>ms|s|m|h|d)?")
_UNITS: Final = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "m": timedelta(minutes=1),
    "h": timedelta(hours=1),
    "d": timedelta(days=1),
}


def parse_duration(text: str) -> timedelta:
    """
    Return the span that `text` means; a number without unit is seconds.

    Raises:
        ValueError: it means none; the message says what would.
    """
    written = _WRITTEN.fullmatch(text.strip())
    if written is None:
        raise ValueError(f"{text!r} is no duration; write seconds, or 500ms, 90s, 5m, 2h, 1d")
    try:
        return float(written["number"]) * _UNITS[written["unit"] or "s"]
    except OverflowError:
        raise ValueError(f"{text!r} is too long") from None


def as_span(name: str, span: timedelta | float) -> timedelta:
    """
    Return a span that a program gave as a timedelta or in seconds.

    Args:
        name: of the argument, for the messages.

    Raises:
        TypeError: it is neither.
        ValueError: it is not finite, or beyond what a timedelta holds.
    """
    if isinstance(span, timedelta):
        return span
    if isinstance(span, bool) or not isinstance(span, int | float):
        raise TypeError(f"{name} must be a timedelta or a number of seconds, not {span!r}")
    if not math.isfinite(span):
        raise ValueError(f"{name} must be finite, not {span!r}")
    try:
        return timedelta(seconds=span)
    except OverflowError:
        raise ValueError(f"{name} must be less than 2.7 million years, not {span!r} s") from None


def shown(span: timedelta) -> str:
    """Return `span` in its largest whole unit, as `parse_duration` reads it."""
    for unit in ("d", "h", "m", "s"):
        if span and not span % _UNITS[unit]:
            return f"{span // _UNITS[unit]}{unit}"
    return f"{span / timedelta(seconds=1):g}s"
