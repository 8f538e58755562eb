"""
Which leases are held, until when each is known to live, and whom to renew next.

No function here reads a clock, talks to a queue or knows of threads: moments, answers
and luck are passed in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import Enum, auto
from typing import Final

import attrs

from ...domain.errors import (
    InvalidArgumentError,
    LeaseLostError,
    TaskNotFoundError,
    TaskQueueError,
)
from ...domain.limits import MAX_LEASE, MIN_LEASE
from ...domain.requests import LeaseRef
from ...domain.views import Beat
from .context import StopReason
from .moment import Moment

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


_COALESCE: float = 0.5
"""A beat takes along every lease that has come this far towards its own."""

_REPORTING_SHARE: float = 2 / 3
"""
For this part of a lease it is renewed after its handler has ended.

If nobody takes the outcome in that time, it is better to let the task go to somebody
who can report: so the lease must run out, although the beats would land.
"""


@attrs.frozen(kw_only=True)
class Verdict:
    """What a lease's handler has to be told."""

    ref: LeaseRef
    reason: StopReason
    why: str
    """In words, for the log."""

    refused: bool = False
    """The queue said so; it may be because the outcome was taken meanwhile."""


@attrs.define(kw_only=True)
class _Entry:
    """One held lease."""

    anchor: Moment
    """The lease is known to live for `remaining` seconds from here."""

    remaining: float
    asked: Moment
    """When a beat last went out for it, or failed; at first the anchor."""

    pause: float
    """Seconds from `asked` to the next beat."""

    reporting_since: Moment | None = None
    refused: bool = False
    """The queue said that the lease is lost while its outcome was being reported."""

    cancel_told: bool = False
    must_end: Moment | None = None
    """When the timeout of its handler is over."""

    def overdue(self, now: Moment) -> bool:
        """Whether its handler should have ended."""
        return self.must_end is not None and now.since(self.must_end) >= 0


@attrs.frozen(kw_only=True)
class Hold:
    """A lease that is to be renewed from now on."""

    ref: LeaseRef
    anchor: Moment
    """It is known to live for `remaining` seconds from here."""

    remaining: float
    must_end: Moment | None = None
    """When the timeout of its handler is over; None: it has none."""


class Sign(Enum):
    """What is seen of the process that holds the leases."""

    ALIVE = auto()
    MUTE = auto()
    """It runs but says nothing: one call into C keeps Python's lock. Timeouts still hold."""

    AWAY = auto()
    """It was stopped, or has been mute for too long: nothing is renewed for it."""


class Ledger:
    """The held leases of one worker. Not for several threads at once."""

    def __init__(self, plan: BeatPlan) -> None:
        self._plan = plan
        self._entries: dict[LeaseRef, _Entry] = {}
        self._silent_since: Moment | None = None
        self._probed: Moment | None = None

    @property
    def silent(self) -> bool:
        """Whether a lease ran out unheard, and no beat has landed since: lease nothing more."""
        return self._silent_since is not None

    @property
    def refs(self) -> tuple[LeaseRef, ...]:
        """The leases held, oldest first."""
        return tuple(self._entries)

    def hold(self, hold: Hold) -> None:
        """Enter a lease; its first beat is due when a third of what remains has passed."""
        self._entries[hold.ref] = _Entry(
            anchor=hold.anchor,
            remaining=hold.remaining,
            asked=hold.anchor,
            pause=hold.remaining / 3,
            must_end=hold.must_end,
        )

    def reporting(self, ref: LeaseRef, *, now: Moment) -> None:
        """Note that the handler has ended and its outcome is being reported."""
        entry = self._entries.get(ref)
        if entry is not None:
            entry.reporting_since = now

    def drop(self, ref: LeaseRef) -> None:
        """Forget a lease: it was settled, or given up."""
        self._entries.pop(ref, None)

    def due(self, now: Moment, sign: Sign = Sign.ALIVE) -> tuple[LeaseRef, ...] | None:
        """
        Return the leases to renew now, and count them as asked for; None: nothing to do.

        An empty tuple asks whether anybody answers at all.
        """
        if sign is Sign.AWAY:
            return None
        live = {
            ref: entry for ref, entry in self._entries.items() if self._renewed(entry, now, sign)
        }
        if any(_wants_beat(entry, now, share=1) for entry in live.values()):
            return self._asked(live, now)
        if self._probed is not None and now.since(self._probed) >= self._plan.retry:
            return self._asked(live, now)
        return None

    def _asked(self, live: Mapping[LeaseRef, _Entry], now: Moment) -> tuple[LeaseRef, ...]:
        chosen = [ref for ref, entry in live.items() if _wants_beat(entry, now, share=_COALESCE)]
        for ref in chosen:
            entry = self._entries[ref]
            entry.asked, entry.pause = now, self._plan.period
        if self.silent:
            self._probed = now
        return tuple(chosen)

    def _renewed(self, entry: _Entry, now: Moment, sign: Sign) -> bool:
        if entry.refused or sign is Sign.AWAY or (sign is Sign.MUTE and entry.overdue(now)):
            return False
        since = entry.reporting_since
        return since is None or now.since(since) < self._plan.lease * _REPORTING_SHARE

    def failed(self, refs: Sequence[LeaseRef], *, now: Moment, jitter: float) -> None:
        """Note that a beat did not land: its leases are asked for again soon."""
        pause = self._plan.retry * (1 + jitter / 2)
        for ref in refs:
            entry = self._entries.get(ref)
            if entry is not None:
                entry.asked, entry.pause = now, pause

    def landed(
        self,
        refs: Sequence[LeaseRef],
        answers: Sequence[Beat | TaskQueueError],
        *,
        sent: Moment,
        now: Moment,
        jitter: float,
    ) -> list[Verdict]:
        """
        Take in the answers to a beat, and return what they mean for the handlers.

        Args:
            refs: the leases it was for.
            answers: one for each.
            sent: when it went out. The queue extended the leases later than that, so
                they live at least as long as if it had been then.
            now: when the answers came.
            jitter: a draw from [0, 1).
        """
        self._silent_since = self._probed = None
        verdicts = []
        for ref, answer in zip(refs, answers, strict=True):
            entry = self._entries.get(ref)
            if entry is None:
                continue
            match answer:
                case Beat():
                    self._extend(entry, answer, sent)
                    if answer.cancel_requested and not entry.cancel_told:
                        entry.cancel_told = True
                        verdicts.append(_called_off(ref))
                case LeaseLostError() | TaskNotFoundError() | InvalidArgumentError():
                    verdicts += self._refuse(ref, entry, answer)
                case _:
                    self.failed([ref], now=now, jitter=jitter)
        return verdicts

    def _extend(self, entry: _Entry, beat: Beat, sent: Moment) -> None:
        if sent.steady > entry.anchor.steady:  # answers may overtake each other
            entry.anchor = sent
            entry.remaining = beat.lease_duration.total_seconds()
            entry.pause = min(entry.pause, entry.remaining / 3)

    def _refuse(self, ref: LeaseRef, entry: _Entry, answer: TaskQueueError) -> list[Verdict]:
        if entry.reporting_since is not None:
            # Perhaps it is lost because the outcome was taken: the answer to the report will tell.
            entry.refused = True
            return []
        del self._entries[ref]
        lost = StopReason.LEASE_LOST
        return [Verdict(ref=ref, reason=lost, why=str(answer), refused=True)]

    def lapsed(self, now: Moment, sign: Sign = Sign.ALIVE) -> list[Verdict]:
        """Drop the leases that have run out by this worker's own clock, and return them."""
        over = [
            (ref, entry)
            for ref, entry in self._entries.items()
            if now.since(entry.anchor) >= entry.remaining
        ]
        for ref, entry in over:
            if self._renewed(entry, now, sign) and not self.silent:
                self._silent_since = now
                self._probed = entry.anchor
            del self._entries[ref]
        return [
            Verdict(
                ref=ref,
                reason=StopReason.LEASE_LOST,
                why="no heartbeat landed for as long as the lease lasts",
            )
            for ref, _ in over
        ]


def _wants_beat(entry: _Entry, now: Moment, *, share: float) -> bool:
    return now.since(entry.asked) >= entry.pause * share


def _called_off(ref: LeaseRef) -> Verdict:
    return Verdict(ref=ref, reason=StopReason.CANCEL_REQUESTED, why="somebody called the task off")
