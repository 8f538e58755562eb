"""How often a lease is renewed, and how long each try may take."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from ...domain.limits import MAX_LEASE, MIN_LEASE

_DEADLINE_SHARE: Final = 0.8
_RETRY_SHARE: Final = 0.25
_TICK_SHARE: Final = 0.1
_MAX_TICK: Final = 0.5


@attrs.frozen(kw_only=True)
class BeatPlan:
    """When heartbeats go out. In seconds; refuses a plan by which a lease could run out."""

    lease: float
    period: float
    """From one beat of a lease to the next."""

    deadline: float
    """What one beat may take; less than a period, so that beats do not pile up."""

    retry: float
    """From a beat that failed to the next try; a half more at most, by jitter."""

    tick: float
    """How often to look whether a beat is due."""

    def __attrs_post_init__(self) -> None:
        """Check that a lease survives one beat that is swallowed whole."""
        if not 0 < self.tick <= self.period or not 0 < self.retry <= self.period:
            raise ValueError("tick and retry must be positive and no longer than a period")
        if not 0 < self.deadline < self.period:
            raise ValueError("a beat's deadline must be positive and shorter than a period")
        if self.worst_gap >= self.lease:
            raise ValueError(
                f"beats every {self.period} s that take up to {self.deadline} s"
                f" do not keep a lease of {self.lease} s"
            )

    @property
    def worst_gap(self) -> float:
        """How far two landed beats can lie apart when the one between them is swallowed."""
        return 2 * (self.period + self.tick) + self.deadline


def plan_beats(lease: timedelta) -> BeatPlan:
    """
    Return the plan for leases of this length.

    Raises:
        ValueError: it is not from 1 s to 12 h.
    """
    if not MIN_LEASE <= lease <= MAX_LEASE:
        raise ValueError(f"lease_duration must be from 1 s to 12 h, not {lease}")
    seconds = lease.total_seconds()
    period = seconds / 3
    tick = min(period * _TICK_SHARE, _MAX_TICK)
    return BeatPlan(
        lease=seconds,
        period=period,
        # What remains of a third of the lease once the looks before both beats are paid for.
        deadline=(period - 2 * tick) * _DEADLINE_SHARE,
        retry=period * _RETRY_SHARE,
        tick=tick,
    )
