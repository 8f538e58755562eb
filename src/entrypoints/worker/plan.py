"""What a worker is made to do, checked when it is made."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from ...domain import validation
from ...domain.limits import DEFAULT_LEASE, MAX_BATCH
from ...domain.requests import LeaseRequest
from .ledger import BeatPlan, plan_beats

DEFAULT_CONCURRENCY: Final = 10
DEFAULT_GRACE: Final = timedelta(seconds=25)
"""Less than the 30 s after which most supervisors kill a process that was told to end."""

_SHORTEST_SETTLE: Final = timedelta(seconds=1)
_LONGEST_SETTLE: Final = timedelta(seconds=10)


@attrs.frozen(kw_only=True)
class Plan:
    """
    A worker's settings.

    Raises:
        InvalidArgumentError: a queue is no name, or the lease is not from 1 s to 12 h.
        ValueError: another setting is out of bounds.
    """

    queues: tuple[str, ...]
    """At most 100 names; empty: `default`."""

    concurrency: int = attrs.field(default=DEFAULT_CONCURRENCY)
    """1 to 1000 tasks at once."""

    lease_duration: timedelta = DEFAULT_LEASE
    """1 s to 12 h; renewed at every third of it."""

    grace: timedelta = attrs.field(default=DEFAULT_GRACE)
    """How long handlers may go on once the worker is told to stop; not negative."""

    beats: BeatPlan = attrs.field(init=False)

    @beats.default
    def _beats_that_fit(self) -> BeatPlan:
        self.lease_request(worker_id="any", types=())
        return plan_beats(self.lease_duration)

    @concurrency.validator
    def _concurrency_is_bounded(self, _: object, concurrency: int) -> None:
        if not 1 <= concurrency <= MAX_BATCH:
            raise ValueError(f"concurrency must be from 1 to {MAX_BATCH}, not {concurrency}")

    @grace.validator
    def _grace_is_bounded(self, _: object, grace: timedelta) -> None:
        if grace < timedelta(0):
            raise ValueError(f"grace must not be negative, but is {grace}")

    def lease_request(self, *, worker_id: str, types: tuple[str, ...]) -> LeaseRequest:
        """
        Return what to ask the queue for.

        Raises:
            InvalidArgumentError: naming every fault.
        """
        request = LeaseRequest(
            worker_id=worker_id,
            queues=self.queues,
            types=types,
            lease_duration=self.lease_duration,
        )
        validation.lease_terms(request)
        return request

    @property
    def settle_within(self) -> timedelta:
        """What one call that reports outcomes may take."""
        return min(max(self.lease_duration / 3, _SHORTEST_SETTLE), _LONGEST_SETTLE)
