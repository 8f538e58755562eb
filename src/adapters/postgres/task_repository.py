"""The `TaskRepository` on PostgreSQL, put together."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from ...domain.errors import TaskQueueError
from ...domain.ids import QueueName, TaskId, TaskType
from ...domain.storing import (
    Added,
    Change,
    Demand,
    Found,
    PruneRule,
    QueueDepths,
    Replaced,
    Selection,
)
from ...domain.task import AttemptError, Task
from .adding import Adding
from .changing import Changing
from .claiming import Claiming
from .claiming_around import ClaimingAround
from .connections import Connections
from .counting import Counting
from .faults import DRIVER_ERRORS, is_refusal, translated
from .finding import Finding
from .listing import Listing
from .removing import Removing
from .statements import Schema


class PostgresTaskRepository:
    """A `TaskRepository` in the table `tasks`. The driver's errors end here."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._adding = Adding(connections, schema)
        self._claiming = Claiming(connections, schema)
        self._changing = Changing(connections, schema)
        self._finding = Finding(connections, schema)
        self._claiming_around = ClaimingAround(
            connections, schema, finding=self._finding, changing=self._changing
        )
        self._removing = Removing(connections, schema, finding=self._finding)
        self._listing = Listing(connections, schema)
        self._counting = Counting(connections, schema)

    async def add(self, tasks: Sequence[Task]) -> list[Added | Task | TaskQueueError]:
        """Store tasks; see `TaskRepository.add`."""
        with translated():
            return await self._adding.add(tasks)

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease due tasks; see `TaskRepository.claim`."""
        with translated():
            try:
                return await self._claiming.claim(demand, now=now)
            except DRIVER_ERRORS as error:
                if not is_refusal(error):
                    raise
                return await self._claiming_around.claim(demand, now=now)

    async def next_due(
        self,
        queues: Sequence[QueueName],
        types: Sequence[TaskType],  # noqa: ARG002  a hint may ignore them
        *,
        now: datetime,
    ) -> datetime | None:
        """Return when the next task becomes due; see `TaskRepository.next_due`."""
        with translated():
            return await self._finding.next_due(queues, now=now)

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return tasks by id; see `TaskRepository.load`."""
        with translated():
            return await self._finding.load(ids, with_payload=with_payload)

    async def replace(self, changes: Sequence[Change]) -> list[Replaced | TaskQueueError]:
        """Compare and swap; see `TaskRepository.replace`."""
        with translated():
            return await self._changing.replace(changes)

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return leased tasks whose lease has ended; see `TaskRepository.expired`."""
        with translated():
            return await self._finding.expired(now=now, limit=limit)

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """Return tasks by what they are; see `TaskRepository.search`."""
        with translated():
            return await self._listing.search(selection, limit=limit, with_payload=with_payload)

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """Compare and remove; see `TaskRepository.delete`."""
        with translated():
            return await self._removing.delete(tasks)

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make rows dead unread; see `TaskRepository.quarantine`."""
        with translated():
            await self._removing.quarantine(ids, error, now=now)

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is; see `TaskRepository.stats`."""
        with translated():
            return await self._counting.stats(now=now)

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago; see `TaskRepository.prune`."""
        with translated():
            return await self._removing.prune(rules, limit=limit)
