"""The services of leaseq, stopped at each word to the storage, to be gone on with in any order."""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, assert_never, cast

import attrs

from leaseq.adapters.memory import MemoryQueueRepository, MemoryTaskRepository
from leaseq.domain.admin import AdminService
from leaseq.domain.ids import LeaseToken, TaskId
from leaseq.domain.maintenance import MaintenanceService
from leaseq.domain.ports import TaskRepository
from leaseq.domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
)
from leaseq.domain.service import QueueService
from leaseq.domain.snapshots import Snapshots
from leaseq.domain.storing import Change, Found
from leaseq.domain.task import Task
from leaseq.testing import FixedJitter, ManualClock, ManualWakeUp, a_task_id


@attrs.frozen(kw_only=True)
class Undo:
    """A server takes a lease back that it could not deliver."""

    ref: LeaseRef


@attrs.frozen
class Reap:
    """The reaper makes its round."""


@attrs.frozen(kw_only=True)
class Cancel:
    """An operator calls a task off."""

    task_id: TaskId


@attrs.frozen(kw_only=True)
class Requeue:
    """An operator starts a task anew."""

    task_id: TaskId


Asked = (
    LeaseRequest
    | HeartbeatRequest
    | Complete
    | Fail
    | Release
    | NewTask
    | Undo
    | Reap
    | Cancel
    | Requeue
)


@attrs.frozen
class Operation:
    """One word to the storage: a method of `TaskRepository` and what it is given."""

    method: str
    given: tuple[Any, ...] = ()
    options: tuple[tuple[str, Any], ...] = ()


@attrs.frozen(kw_only=True, eq=False)
class Turn:
    """What a call went on with: what the server knew, the time by its clock, the answer it got."""

    seen: tuple[Task, ...]
    now: datetime
    response: Any = None


@attrs.frozen(kw_only=True, eq=False)
class Stop:
    """Where a call stands after a turn: at a word to the storage, or at its end."""

    seen: tuple[Task, ...]
    operation: Operation | None = None
    answer: Any = None


@types.coroutine
def _ask(method: str, *given: Any, **options: Any) -> Generator[Operation, Any, Any]:
    hashable = tuple(tuple(each) if isinstance(each, list) else each for each in given)
    return (yield Operation(method, hashable, tuple(options.items())))


class _Asking:
    """A `TaskRepository` that stops whoever asks it."""

    def __getattr__(self, method: str) -> Callable[..., Awaitable[Any]]:
        return partial(_ask, method)


@attrs.frozen
class _Names:
    """`Ids` for one call, which makes one name at most."""

    token: str

    def task_id(self) -> TaskId:
        return a_task_id(int(self.token[-1]))

    def lease_token(self) -> LeaseToken:
        return LeaseToken(self.token)


def replay(asked: Asked, token: str, turns: tuple[Turn, ...], uncertainty: timedelta) -> Stop:
    """
    Carry out a call with these turns, and return where it stands.

    A coroutine cannot be copied, so a call that shall go on in two ways is begun twice.
    """
    clock = _SetClock(turns[0].now, uncertainty)
    queue = QueueService(
        tasks=cast("TaskRepository", _Asking()),
        clock=clock,
        ids=_Names(token),
        jitter=FixedJitter(),
        wake_up=ManualWakeUp(ManualClock()),
    )
    snapshots = queue._snapshots  # noqa: SLF001  what a server remembers is part of its state
    known = {task.id for turn in turns for task in turn.seen}
    course = _begin(asked, queue, clock)
    try:
        for turn in turns:
            clock.time = turn.now
            for task_id in known:
                snapshots.forget(task_id)
            for task in turn.seen:
                snapshots.keep(task)
            operation = course.send(turn.response)
            known |= _ids_of(turn.response) | _ids_of(operation)
    except StopIteration as end:
        known |= _ids_of(turn.response)
        return Stop(seen=_recalled(snapshots, known), answer=end.value)
    finally:
        course.close()
    return Stop(seen=_recalled(snapshots, known), operation=operation)


def stored_after(rows: tuple[Task, ...], operation: Operation, kind: Kind) -> Stored:
    """Carry out a word on a storage that holds `rows`; atomic, as storages promise."""
    repository = kind(MemoryQueueRepository())
    _at_once(repository.add(rows))
    options = dict(operation.options)
    response = _at_once(getattr(repository, operation.method)(*operation.given, **options))
    ids = {row.id for row in rows} | _ids_of(operation)
    found = _at_once(repository.load(sorted(ids), with_payload=True))
    return Stored(rows=tuple(sorted(found.tasks, key=lambda task: task.id)), response=response)


Kind = type[MemoryTaskRepository]


@attrs.frozen(kw_only=True, eq=False)
class Stored:
    """What a storage holds after a word, and what it answered."""

    rows: tuple[Task, ...]
    response: Any


@attrs.define
class _SetClock:
    time: datetime
    _uncertainty: timedelta

    def now(self) -> datetime:
        return self.time

    def uncertainty(self) -> timedelta:
        return self._uncertainty


def _begin(asked: Asked, queue: QueueService, clock: _SetClock) -> Coroutine[Any, Any, Any]:
    tasks = cast("TaskRepository", _Asking())
    wake_up = ManualWakeUp(ManualClock())
    admin = AdminService(tasks=tasks, queues=MemoryQueueRepository(), clock=clock, wake_up=wake_up)
    match asked:
        case LeaseRequest():
            return queue.lease(asked)
        case HeartbeatRequest():
            return queue.heartbeat(asked)
        case Complete() | Fail() | Release():
            return queue.settle([asked])
        case NewTask():
            return queue.enqueue([asked])
        case Undo():
            return queue.undo_leases([asked.ref])
        case Reap():
            return MaintenanceService(
                tasks=tasks, clock=clock, jitter=FixedJitter(), wake_up=wake_up
            ).reap()
        case Cancel():
            return admin.cancel([asked.task_id])
        case Requeue():
            return admin.requeue([asked.task_id])
        case _:
            assert_never(asked)


def _at_once(course: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that awaits nothing."""
    try:
        course.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("the memory storage awaited something")


def _recalled(snapshots: Snapshots, ids: set[TaskId]) -> tuple[Task, ...]:
    recalled = (snapshots.recall(task_id) for task_id in sorted(ids))
    return tuple(task for task in recalled if task is not None)


def _ids_of(spoken: object) -> set[TaskId]:
    """Return the tasks that a word to the storage, or its answer, is about."""
    match spoken:
        case Operation(given=given):
            return _ids_of(given)
        case Found(tasks=tasks):
            return _ids_of(tasks)
        case tuple():
            return {task_id for item in spoken for task_id in _ids_of(item)}
        case Change(old=Task(id=task_id)) | Task(id=task_id):
            return {task_id}
        case str():
            return {TaskId(spoken)}
        case _:
            return set()
