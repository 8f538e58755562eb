"""
Tasks kept in this process and gone with it.

No method here awaits anything, so each is atomic on its event loop. Values are frozen,
so callers cannot reach inside.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import islice

from ..domain import contract
from ..domain.errors import TaskQueueError
from ..domain.ids import IdempotencyKey, QueueName, TaskId, TaskType
from ..domain.ports import Clock
from ..domain.storing import (
    Added,
    Change,
    Demand,
    Found,
    PruneRule,
    Queue,
    QueueDepths,
    Replaced,
    Selection,
)
from ..domain.task import AttemptError, Leased, Queued, Task
from .clock import SystemClock

_Place = tuple[datetime, TaskId]
"""Where a queued task stands in the line of its queue, priority and type."""


class MemoryTaskRepository:
    """A `TaskRepository` in a dictionary, with the lines that claims walk kept sorted."""

    def __init__(self, queues: MemoryQueueRepository) -> None:
        self._queues = queues
        self._tasks: dict[TaskId, Task] = {}
        self._keys: dict[tuple[QueueName, IdempotencyKey], TaskId] = {}
        self._leased: set[TaskId] = set()
        self._lines: dict[QueueName, dict[tuple[int, TaskType], list[_Place]]] = {}

    async def add(self, tasks: Sequence[Task]) -> list[Added | Task]:
        """Store tasks; see `TaskRepository.add`."""
        return [self._add(task) for task in tasks]

    def _add(self, task: Task) -> Added | Task:
        if (known := self._tasks.get(task.id)) is not None:
            return contract.repeated(known, task)
        if task.idempotency_key is not None:
            holder = self._keys.setdefault((task.queue, task.idempotency_key), task.id)
            if holder != task.id:
                return contract.without_payload(self._tasks[holder])
        self._put(task)
        return Added.STORED

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease due tasks; see `TaskRepository.claim`."""
        if self._queues.paused(demand.queue):
            return Found()
        due = self._due(demand.queue, demand.types, now)
        leased = contract.lease_first(due, demand, now=now)
        for task in leased:
            self._put(task)
        return Found(tasks=tuple(leased))

    def _due(self, queue: QueueName, types: Sequence[TaskType], now: datetime) -> Iterator[Task]:
        lines = self._lines.get(queue, {})
        priorities = sorted({priority for priority, _ in lines}, reverse=True)
        for priority in priorities:
            served = [
                line
                for (line_priority, type_), line in lines.items()
                if line_priority == priority and (not types or type_ in types)
            ]
            for run_after, task_id in heapq.merge(*served):
                if run_after > now:
                    break
                yield self._tasks[task_id]

    async def next_due(
        self, queues: Sequence[QueueName], types: Sequence[TaskType], *, now: datetime
    ) -> datetime | None:
        """Return when the next task becomes due; see `TaskRepository.next_due`."""
        lines = [
            line
            for queue in queues
            for (_, type_), line in self._lines.get(queue, {}).items()
            if not types or type_ in types
        ]
        places = [(line, bisect_right(line, now, key=_run_after)) for line in lines]
        later = [line[place][0] for line, place in places if place < len(line)]
        return min(later, default=None)

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return tasks by id; see `TaskRepository.load`."""
        found = (self._tasks[task_id] for task_id in dict.fromkeys(ids) if task_id in self._tasks)
        return Found(tasks=contract.read(found, with_payload=with_payload))

    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        """Compare and swap; see `TaskRepository.replace`."""
        return [self._replace(change) for change in changes]

    def _replace(self, change: Change) -> Replaced:
        new = contract.replacement(self._tasks.get(change.old.id), change)
        if new is None:
            return Replaced.STALE
        self._put(new)
        return Replaced.DONE

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return leased tasks whose lease has ended; see `TaskRepository.expired`."""
        leased = (self._tasks[task_id] for task_id in self._leased)
        ended = (task for task in leased if contract.has_expired(task, now))
        return Found(tasks=contract.read(islice(ended, limit), with_payload=False))

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """Return tasks by what they are; see `TaskRepository.search`."""
        found = contract.newest_first(self._tasks.values(), selection, limit=limit)
        return Found(tasks=contract.read(found, with_payload=with_payload))

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """Compare and remove; see `TaskRepository.delete`."""
        return [self._delete(task) for task in tasks]

    def _delete(self, task: Task) -> Replaced:
        stored = self._tasks.get(task.id)
        if stored is None or not contract.still_stands(stored, task):
            return Replaced.STALE
        self._remove(stored)
        return Replaced.DONE

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make tasks dead unread; see `TaskRepository.quarantine`."""
        for task_id in ids:
            if task_id in self._tasks:
                self._put(contract.quarantined(self._tasks[task_id], error, now=now))

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is; see `TaskRepository.stats`."""
        return contract.depths(self._tasks.values(), now=now)

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago; see `TaskRepository.prune`."""
        old = (task for task in self._tasks.values() if contract.may_be_pruned(task, rules))
        going = list(islice(old, limit))
        for task in going:
            self._remove(task)
        return len(going)

    def _put(self, task: Task) -> None:
        stored = self._tasks.get(task.id)
        if stored is not None:
            self._leave_line(stored)
        self._tasks[task.id] = task
        match task.state:
            case Queued():
                lines = self._lines.setdefault(task.queue, {})
                insort(lines.setdefault((task.priority, task.type), []), _place(task))
            case Leased():
                self._leased.add(task.id)

    def _remove(self, task: Task) -> None:
        self._leave_line(task)
        del self._tasks[task.id]
        if task.idempotency_key is not None:
            del self._keys[task.queue, task.idempotency_key]

    def _leave_line(self, task: Task) -> None:
        self._leased.discard(task.id)
        if isinstance(task.state, Queued):
            lines = self._lines[task.queue]
            line = lines[task.priority, task.type]
            del line[bisect_left(line, _place(task))]
            if not line:
                del lines[task.priority, task.type]
            if not lines:
                del self._lines[task.queue]


class MemoryQueueRepository:
    """A `QueueRepository` in a dictionary."""

    def __init__(self) -> None:
        self._queues: dict[QueueName, Queue] = {}

    def paused(self, name: QueueName) -> bool:
        """Whether nothing may be leased from the queue."""
        return name in self._queues and self._queues[name].paused

    async def load(self, name: QueueName) -> Queue:
        """Return what is kept about a queue; see `QueueRepository.load`."""
        return self._queues.get(name, Queue(name=name))

    async def all(self) -> list[Queue]:
        """Return what is kept; see `QueueRepository.all`."""
        return [self._queues[name] for name in sorted(self._queues)]

    async def replace(self, old: Queue, new: Queue) -> bool:
        """Compare and swap; see `QueueRepository.replace`."""
        if (await self.load(old.name)).version != old.version:
            return False
        self._queues[new.name] = new
        return True


class MemoryStorage:
    """A `Storage` that lasts as long as this object."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.queues = MemoryQueueRepository()
        self.tasks = MemoryTaskRepository(self.queues)
        self.clock: Clock = clock or SystemClock()

    async def tend(self) -> None:
        """Do nothing: nothing here wears."""


def _place(task: Task) -> _Place:
    return task.run_after, task.id


def _run_after(place: _Place) -> datetime:
    return place[0]
