"""
Everything that can go wrong, as types.

    TaskQueueError
    ├── InvalidArgumentError        the caller asked for nonsense
    ├── TaskNotFoundError           no task has this id
    ├── IdempotencyKeyReusedError   the key belongs to a task with other content
    ├── TaskIdReusedError           a task with other content has this id
    ├── LeaseLostError              expired, superseded, cancelled or finished
    ├── TaskNotDeadError            requeue of a task that was not given up
    ├── TaskFinishedError           cancel of a task that has ended
    ├── TaskNotFinishedError        delete of a task that has not ended
    ├── OverloadedError             too much at once; try again later
    ├── ContendedError              others changed the task first, three times
    ├── UnreadableTaskError         what is stored under this id is no task
    └── StorageError                storage refused or failed
        └── StorageUnavailableError  may work later
            └── NotSentError         may work later, and nothing was done
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from enum import StrEnum
from typing import final

import attrs

from .ids import IdempotencyKey, QueueName, TaskId


class TaskQueueError(Exception):
    """The root of every error that leaseq raises on purpose."""


@attrs.frozen(kw_only=True)
class FieldViolation:
    """One fault of one argument; `field` is spelt as on the wire (`tasks[3].queue`)."""

    field: str
    description: str


@final
class InvalidArgumentError(TaskQueueError):
    """The caller asked for nonsense; `violations` names each fault."""

    def __init__(self, violations: Sequence[FieldViolation]) -> None:
        self.violations = tuple(violations)
        super().__init__("; ".join(f"{v.field}: {v.description}" for v in self.violations))


@final
class TaskNotFoundError(TaskQueueError):
    """No task has this id."""

    def __init__(self, task_id: TaskId) -> None:
        self.task_id = task_id
        super().__init__(f"no task has the id {task_id}")


@final
class IdempotencyKeyReusedError(TaskQueueError):
    """The idempotency key belongs to `task_id`, a task with another payload or type."""

    def __init__(self, *, queue: QueueName, key: IdempotencyKey, task_id: TaskId) -> None:
        self.queue = queue
        self.key = key
        self.task_id = task_id
        super().__init__(
            f"idempotency key {key!r} of queue {queue} belongs to task {task_id},"
            " which has another payload or type"
        )


@final
class TaskIdReusedError(TaskQueueError):
    """The id that a producer chose belongs to a task of another queue, type or payload."""

    def __init__(self, task_id: TaskId) -> None:
        self.task_id = task_id
        super().__init__(f"the id {task_id} belongs to a task of another queue, type or payload")


class LostReason(StrEnum):
    """Why a lease is not its caller's any more."""

    LEASE_EXPIRED = "LEASE_EXPIRED"
    LEASE_SUPERSEDED = "LEASE_SUPERSEDED"
    TASK_CANCELLED = "TASK_CANCELLED"
    TASK_FINISHED = "TASK_FINISHED"


@final
class LeaseLostError(TaskQueueError):
    """The lease is not the caller's any more; nothing was changed. Never worth a retry."""

    def __init__(self, task_id: TaskId, reason: LostReason) -> None:
        self.task_id = task_id
        self.reason = reason
        super().__init__(f"{_LOST[reason]} (task {task_id})")


_LOST = {
    LostReason.LEASE_EXPIRED: "the lease expired before this call",
    LostReason.LEASE_SUPERSEDED: "the task went on without this lease",
    LostReason.TASK_CANCELLED: "the task was cancelled",
    LostReason.TASK_FINISHED: "the task has ended",
}


@final
class TaskNotDeadError(TaskQueueError):
    """Only a failed, dead or cancelled task can be requeued."""

    def __init__(self, task_id: TaskId, status: str) -> None:
        self.task_id = task_id
        self.status = status
        super().__init__(
            f"task {task_id} is {status}; only failed, dead or cancelled tasks are requeued"
        )


@final
class TaskFinishedError(TaskQueueError):
    """A task that has ended cannot be cancelled."""

    def __init__(self, task_id: TaskId, status: str) -> None:
        self.task_id = task_id
        self.status = status
        super().__init__(f"task {task_id} is {status} already")


@final
class TaskNotFinishedError(TaskQueueError):
    """A task that has not ended cannot be deleted."""

    def __init__(self, task_id: TaskId, status: str) -> None:
        self.task_id = task_id
        self.status = status
        super().__init__(f"task {task_id} is {status}; cancel it before deleting it")


@final
class OverloadedError(TaskQueueError):
    """Too much at once. `reason` is a word for programs (`TOO_MANY_WAITERS`)."""

    def __init__(self, reason: str, message: str, *, retry_after: timedelta) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(message)


@final
class ContendedError(TaskQueueError):
    """Others were faster at each of three tries. Trying again may work."""

    def __init__(self, subject: str) -> None:
        self.subject = subject
        super().__init__(f"{subject} is being changed by others; try again")


@final
class UnreadableTaskError(TaskQueueError):
    """What is stored under this id cannot be read as a task."""

    def __init__(self, task_id: TaskId) -> None:
        self.task_id = task_id
        super().__init__(f"the stored row of task {task_id} cannot be read")


class StorageError(TaskQueueError):
    """The storage refused or failed. `str()` holds no secret and no payload."""


class StorageUnavailableError(StorageError):
    """
    The storage cannot be reached or is not ready. Trying again may work.

    Whether the call was carried out is unknown, unless it is a NotSentError.
    """


@final
class NotSentError(StorageUnavailableError):
    """Nobody who could have carried the call out has seen it: nothing was done."""
