"""Tasks and queues in a log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import islice
from typing import ParamSpec, TypeVar

import attrs

from leaseq.storage import (
    Added,
    AttemptError,
    Change,
    Demand,
    Found,
    PruneRule,
    Queue,
    QueueDepths,
    QueueName,
    Replaced,
    Selection,
    Task,
    TaskId,
    TaskQueueError,
    TaskType,
    UnreadableTaskError,
    depths,
    due_in_order,
    has_expired,
    lease_first,
    may_be_pruned,
    newest_first,
    next_due,
    quarantined,
    read,
    repeated,
    replacement,
    still_stands,
    without_payload,
)

from .contents import Commit, Key, key_of
from .log import Log

P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen
class LogThread:
    """
    The one thread that touches the log.

    One call runs at a time, so each is atomic; and one whose caller was cancelled runs to
    its end, so that memory and disk never tell different stories.
    """

    log: Log
    _thread: ThreadPoolExecutor = attrs.field(
        factory=lambda: ThreadPoolExecutor(max_workers=1, thread_name_prefix="leaseq-toy")
    )

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call `call` in the thread, once all that was asked before is done."""
        future = self._thread.submit(call, *args, **kwargs)
        return await asyncio.wrap_future(future)

    def end(self) -> None:
        """Close the log, once all that was asked before is done."""
        self._thread.submit(self.log.close)
        self._thread.shutdown()


class ToyTaskRepository:
    """A `TaskRepository` that looks at every task for every answer: simple, and slow when full."""

    def __init__(self, thread: LogThread) -> None:
        self._run = thread.run
        self._log = thread.log
        self._kept = thread.log.contents

    async def add(self, tasks: Sequence[Task]) -> Sequence[Added | Task | TaskQueueError]:
        """Store each task, unless its id or its key is there already."""
        return await self._run(self._add, tasks)

    def _add(self, tasks: Sequence[Task]) -> Sequence[Added | Task | TaskQueueError]:
        new: dict[TaskId, Task] = {}
        taken: dict[Key, TaskId] = {}
        answers: list[Added | Task | TaskQueueError] = []
        for task in tasks:
            key = key_of(task)
            holder = None if key is None else self._kept.holders.get(key, taken.get(key))
            known = self._kept.tasks.get(task.id) or new.get(task.id)
            if task.id in self._kept.damaged:
                answers.append(UnreadableTaskError(task.id))
            elif known is not None:
                answers.append(repeated(known, task))
            elif holder is None:
                new[task.id] = task
                if key is not None:
                    taken[key] = task.id
                answers.append(Added.STORED)
            elif holder in self._kept.damaged:
                answers.append(UnreadableTaskError(holder))
            else:
                answers.append(without_payload(self._kept.tasks.get(holder) or new[holder]))
        self._log.commit(Commit(put=tuple(new.values())))
        return answers

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease what is due, in order; nothing of a paused queue."""
        return await self._run(self._claim, demand, now)

    def _claim(self, demand: Demand, now: datetime) -> Found:
        if self._kept.queues.get(demand.queue, Queue(name=demand.queue)).paused:
            return Found()
        in_order = due_in_order(self._kept.tasks.values(), demand, now=now)
        leased = tuple(lease_first(in_order, demand, now=now))
        self._log.commit(Commit(put=leased))
        return Found(tasks=leased)

    async def next_due(
        self, queues: Sequence[QueueName], types: Sequence[TaskType], *, now: datetime
    ) -> datetime | None:
        """Return when the next task becomes due that is not due yet."""
        return await self._run(lambda: next_due(self._kept.tasks.values(), queues, types, now=now))

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return tasks by id; each once."""
        return await self._run(self._load, ids, with_payload=with_payload)

    def _load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        wanted = dict.fromkeys(ids)
        tasks = [self._kept.tasks[each] for each in wanted if each in self._kept.tasks]
        return Found(
            tasks=read(tasks, with_payload=with_payload),
            unreadable=tuple(each for each in wanted if each in self._kept.damaged),
        )

    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        """Store each change of a task that is as it was when the change was decided."""
        return await self._run(self._replace, changes)

    def _replace(self, changes: Sequence[Change]) -> Sequence[Replaced]:
        new = [replacement(self._kept.tasks.get(change.old.id), change) for change in changes]
        self._log.commit(Commit(put=tuple(task for task in new if task is not None)))
        return [Replaced.STALE if task is None else Replaced.DONE for task in new]

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return leased tasks whose lease has ended."""
        return await self._run(self._expired, now, limit)

    def _expired(self, now: datetime, limit: int) -> Found:
        ended = (task for task in self._kept.tasks.values() if has_expired(task, now))
        return Found(tasks=read(islice(ended, limit), with_payload=False))

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """Return tasks by what they are, the greatest id first."""
        return await self._run(self._search, selection, limit, with_payload=with_payload)

    def _search(self, selection: Selection, limit: int, *, with_payload: bool) -> Found:
        found = newest_first(self._kept.tasks.values(), selection, limit=limit)
        return Found(tasks=read(found, with_payload=with_payload))

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """Remove each task that is as it was when that was decided."""
        return await self._run(self._delete, tasks)

    def _delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        going = {task.id for task in tasks if still_stands(self._kept.tasks.get(task.id), task)}
        self._log.commit(Commit(drop=tuple(going)))
        return [Replaced.DONE if task.id in going else Replaced.STALE for task in tasks]

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make tasks dead. Damaged ones are out of everybody's way already, and stay."""
        await self._run(self._quarantine, ids, error, now)

    def _quarantine(self, ids: Sequence[TaskId], error: AttemptError, now: datetime) -> None:
        tasks = [self._kept.tasks[each] for each in ids if each in self._kept.tasks]
        self._log.commit(Commit(put=tuple(quarantined(task, error, now=now) for task in tasks)))

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is."""
        return await self._run(lambda: depths(self._kept.tasks.values(), now=now))

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago."""
        return await self._run(self._prune, rules, limit)

    def _prune(self, rules: Sequence[PruneRule], limit: int) -> int:
        old = (task.id for task in self._kept.tasks.values() if may_be_pruned(task, rules))
        going = tuple(islice(old, limit))
        self._log.commit(Commit(drop=going))
        return len(going)


class ToyQueueRepository:
    """A `QueueRepository` in the same log."""

    def __init__(self, thread: LogThread) -> None:
        self._run = thread.run
        self._log = thread.log
        self._kept = thread.log.contents

    async def load(self, name: QueueName) -> Queue:
        """Return what is kept about a queue, or its defaults at version 0."""
        return await self._run(lambda: self._kept.queues.get(name, Queue(name=name)))

    async def all(self) -> list[Queue]:
        """Return what is kept, by name."""
        return await self._run(lambda: [queue for _, queue in sorted(self._kept.queues.items())])

    async def replace(self, old: Queue, new: Queue) -> bool:
        """Store `new` if the version of what is kept is that of `old`."""
        return await self._run(self._replace, old, new)

    def _replace(self, old: Queue, new: Queue) -> bool:
        stored = self._kept.queues.get(old.name, Queue(name=old.name))
        if stored.version != old.version:
            return False
        self._log.commit(Commit(queues=(new,)))
        return True
