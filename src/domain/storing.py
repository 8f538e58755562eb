"""What storages are asked and what they answer, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import Enum, auto

import attrs

from .ids import IdempotencyKey, QueueName, TaskId, TaskType
from .lease import Lease
from .task import Status, Task
from .views import Depth


@attrs.frozen(kw_only=True)
class Demand:
    """What a claim is for."""

    queue: QueueName
    types: tuple[TaskType, ...]
    """Empty: any."""

    grants: tuple[Lease, ...]
    """At least one. The n-th task claimed gets the n-th grant."""

    max_bytes: int
    """Of payload in all; the first task may be larger."""


@attrs.frozen(kw_only=True)
class Found:
    """Tasks read, and the ids of rows that are there but cannot be read as tasks."""

    tasks: tuple[Task, ...] = ()
    unreadable: tuple[TaskId, ...] = ()


class Added(Enum):
    """Says that a task was stored."""

    STORED = auto()


@attrs.frozen(kw_only=True)
class Change:
    """Store `new` where `old` stands. Both have the same id."""

    old: Task
    new: Task


class Replaced(Enum):
    """What became of a change."""

    DONE = auto()
    STALE = auto()
    """What stands there has not the version of `old`, or nothing stands there."""

    BUSY = auto()
    """Somebody holds the row at this moment; nothing was changed, try again."""


@attrs.frozen(kw_only=True)
class PruneRule:
    """Tasks of `status` that finished before `finished_before` may go."""

    status: Status
    finished_before: datetime


@attrs.frozen(kw_only=True)
class QueueDepths:
    """How full a queue is."""

    queue: QueueName
    depths: Mapping[Status, Depth]
    oldest_due_since: datetime | None
    """The `run_after` of the task that has been due longest; None: nothing is due."""


@attrs.frozen(kw_only=True)
class Selection:
    """Which tasks `TaskRepository.search` looks for; every part that is not None narrows."""

    queue: QueueName | None = None
    type: TaskType | None = None
    statuses: tuple[Status, ...] = ()
    """Empty: all."""

    idempotency_key: IdempotencyKey | None = None
    before: TaskId | None = None
    """Only ids that sort before this one."""


@attrs.frozen(kw_only=True)
class Queue:
    """What is kept about a queue beside its tasks. A queue nobody spoke of has version 0."""

    name: QueueName
    paused: bool = False
    version: int = 0
