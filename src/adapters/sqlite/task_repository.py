"""Tasks in an SQLite file."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs

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
from . import changing, claiming, finding, listing
from .connection_thread import ConnectionThread


@attrs.frozen
class SqliteTaskRepository:
    """
    A `TaskRepository` in an SQLite file.

    Every call is one transaction, and one sync of the disk where it writes. What takes as
    long as there is much stored has a thread of its own, so that a claim does not wait for
    an operator's list.
    """

    _writer: ConnectionThread
    _reader: ConnectionThread

    async def add(self, tasks: Sequence[Task]) -> list[Added | Task | TaskQueueError]:
        """Store tasks; see `TaskRepository.add`."""
        if not tasks:
            return []
        return await self._writer.write(lambda connection: changing.add(connection, tasks))

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease due tasks; see `TaskRepository.claim`."""
        return await self._writer.write(
            lambda connection: claiming.claim(connection, demand, now=now)
        )

    async def next_due(
        self, queues: Sequence[QueueName], types: Sequence[TaskType], *, now: datetime
    ) -> datetime | None:
        """Return when the next task, of whatever type, becomes due; see `TaskRepository`."""
        del types
        return await self._writer.read(
            lambda connection: finding.next_due(connection, queues, now=now)
        )

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return tasks by id; see `TaskRepository.load`."""
        if not ids:
            return Found()
        return await self._writer.read(
            lambda connection: finding.load(connection, ids, with_payload=with_payload)
        )

    async def replace(self, changes: Sequence[Change]) -> list[Replaced | TaskQueueError]:
        """Compare and swap; see `TaskRepository.replace`."""
        if not changes:
            return []
        return await self._writer.write(lambda connection: changing.replace(connection, changes))

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return leased tasks whose lease has ended; see `TaskRepository.expired`."""
        return await self._reader.read(
            lambda connection: finding.expired(connection, now=now, limit=limit)
        )

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """Return tasks by what they are; see `TaskRepository.search`."""
        return await self._reader.read(
            lambda connection: listing.search(
                connection, selection, limit=limit, with_payload=with_payload
            )
        )

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """Compare and remove; see `TaskRepository.delete`."""
        if not tasks:
            return []
        return await self._writer.write(lambda connection: changing.delete(connection, tasks))

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make tasks dead unread; see `TaskRepository.quarantine`."""
        if ids:
            await self._writer.write(
                lambda connection: changing.quarantine(connection, ids, error, now=now)
            )

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is; see `TaskRepository.stats`."""
        return await self._reader.read(lambda connection: listing.stats(connection, now=now))

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago; see `TaskRepository.prune`."""
        return await self._writer.write(
            lambda connection: changing.prune(connection, rules, limit=limit)
        )
