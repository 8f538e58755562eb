"""The computer's clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


class SystemClock:
    """The wall clock of this computer; for storages whose users all share the computer."""

    def now(self) -> datetime:
        """Return the time in UTC."""
        return datetime.now(UTC)

    def uncertainty(self) -> timedelta:
        """Return zero: everybody reads the same clock."""
        return timedelta(0)
