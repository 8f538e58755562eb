"""The computer's clocks."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Final

# In Linux the one that runs on while the computer sleeps; elsewhere CLOCK_MONOTONIC does.
_STEADY: Final[int] = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def steady_ns() -> int:
    """Return nanoseconds since some moment, by a clock that nobody sets; sleep is included."""
    return time.clock_gettime_ns(_STEADY)


class SystemClock:
    """The wall clock of this computer; for storages whose users all share the computer."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def uncertainty(self) -> timedelta:
        """Return zero: everybody reads the same clock."""
        return timedelta(0)
