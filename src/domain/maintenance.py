"""What has to be done now and then, carried out in this process."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from . import lifecycle
from .ids import WorkerId
from .ports import Clock, Jitter, TaskRepository, WakeUp
from .storing import Change, PruneRule, Replaced
from .task import Queued, Status, unreadable_row

REAP_BATCH: Final = 500
PRUNE_BATCH: Final = 1000
_MOST_BATCHES: Final = 100
"""Of one pass: a pass ends even where leases expire faster than they are reaped."""

RETENTION: Final = {
    Status.SUCCEEDED: timedelta(days=3),
    Status.CANCELLED: timedelta(days=3),
    Status.FAILED: timedelta(days=30),
    Status.DEAD: timedelta(days=30),
}
_REAPER: Final = WorkerId("leaseq.reaper")


@attrs.define(kw_only=True)
class MaintenanceService:
    """A `Maintenance` on a storage."""

    _tasks: TaskRepository
    _clock: Clock
    _jitter: Jitter
    _wake_up: WakeUp

    async def reap(self) -> int:
        """
        End leases whose time is over; see `Maintenance.reap`.

        A lease is given as much grace as this clock may be wrong, so that none is ended
        before its time by the storage's clock.
        """
        reaped = 0
        for _ in range(_MOST_BATCHES):
            seen, ended = await self._reap_batch()
            reaped += ended
            if seen < REAP_BATCH or not ended:
                break
        return reaped

    async def _reap_batch(self) -> tuple[int, int]:
        now = self._clock.now()
        judged_at = now - self._clock.uncertainty()
        found = await self._tasks.expired(now=judged_at, limit=REAP_BATCH)
        if found.unreadable:
            await self._tasks.quarantine(
                found.unreadable, unreadable_row(_REAPER, now=now), now=now
            )
        changes = [
            Change(old=task, new=lifecycle.expire(task, jitter=self._jitter.draw(), now=now))
            for task in found.tasks
        ]
        outcomes = await self._tasks.replace(changes) if changes else []
        # A change that is stale was renewed, settled or reaped by somebody faster.
        done = [
            change.new
            for change, outcome in zip(changes, outcomes, strict=True)
            if outcome is Replaced.DONE
        ]
        queued = {task.queue for task in done if isinstance(task.state, Queued)}
        if queued:
            self._wake_up.notify(queued)
        return len(found.tasks) + len(found.unreadable), len(done) + len(found.unreadable)

    async def prune(self) -> int:
        """Delete tasks that ended long ago; see `Maintenance.prune`."""
        pruned = 0
        for _ in range(_MOST_BATCHES):
            now = self._clock.now()
            rules = [
                PruneRule(status=status, finished_before=now - kept)
                for status, kept in RETENTION.items()
            ]
            deleted = await self._tasks.prune(rules, limit=PRUNE_BATCH)
            pruned += deleted
            if deleted < PRUNE_BATCH:
                break
        return pruned
