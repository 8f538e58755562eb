"""A lease: one worker's right to a task for a time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs

from .ids import LeaseToken, WorkerId


def utc(_: object, attribute: attrs.Attribute[datetime], moment: datetime) -> None:
    """Refuse a moment that does not say it is UTC (an attrs validator)."""
    if moment.tzinfo is not UTC:
        raise ValueError(f"{attribute.name} must be a datetime in UTC, not {moment!r}")


@attrs.frozen(kw_only=True)
class Lease:
    """One worker's exclusive right to a task, from now until just before `expires_at`."""

    token: LeaseToken
    holder: WorkerId
    expires_at: datetime = attrs.field(validator=utc)

    def expired(self, now: datetime) -> bool:
        """Whether `now` is at or past the end (the end itself is outside the lease)."""
        return now >= self.expires_at

    def extended(self, duration: timedelta, *, now: datetime) -> Lease:
        """Return the lease lasting until `now + duration`, or as it is if it lasts longer."""
        return attrs.evolve(self, expires_at=max(self.expires_at, now + duration))
