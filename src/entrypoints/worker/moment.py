"""Moments whose distance counts the time that the computer slept."""

from __future__ import annotations

import time
from collections.abc import Callable

import attrs

from ...adapters.clock import steady_ns


@attrs.frozen
class Moment:
    """
    A point in time, read from two clocks at once.

    Neither clock alone will do: one stands still while the computer is suspended, the
    other may be set back.
    """

    steady: float
    """Seconds by a clock that is never set; it counts suspends where the system can."""

    wall: float
    """Seconds by the clock on the wall."""

    def plus(self, seconds: float) -> Moment:
        """Return the moment `seconds` later."""
        return Moment(self.steady + seconds, self.wall + seconds)

    def since(self, earlier: Moment) -> float:
        """Return the seconds passed since `earlier`, by the clock that saw more of them."""
        return max(self.steady - earlier.steady, self.wall - earlier.wall)


Stopwatch = Callable[[], Moment]
"""Reads the moment; to be called from any thread."""


def read_moment() -> Moment:
    """Return this moment."""
    return Moment(
        steady_ns() / 1e9,
        time.time(),  # noqa: TID251  a worker's own leases are measured by its own clocks
    )
