"""What callers are told, as plain values: exactly the fields of the wire."""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from .ids import (
    IdempotencyKey,
    JsonText,
    LeaseToken,
    QueueName,
    TaskId,
    TaskType,
    WorkerId,
)
from .lease import Lease
from .requests import LeaseRef
from .task import AttemptError, Leased, Queued, Status, Succeeded, Task


@attrs.frozen(kw_only=True)
class TaskView:
    """A task as its producers, workers and operators see it."""

    id: TaskId
    queue: QueueName
    type: TaskType
    payload: JsonText | None
    """None where it was not asked for."""

    status: Status
    priority: int
    attempts: int
    """Attempts of this cycle that have ended."""

    max_attempts: int
    run_after: datetime
    created_at: datetime
    updated_at: datetime
    finished_at: datetime | None
    lease_owner: WorkerId | None
    lease_expires_at: datetime | None
    idempotency_key: IdempotencyKey | None
    last_error: str | None
    errors: tuple[AttemptError, ...]
    result: JsonText | None


def view(task: Task, *, with_errors: bool = True) -> TaskView:
    """Return `task` as callers see it."""
    lease = task.state.lease if isinstance(task.state, Leased) else None
    finished_at = None if isinstance(task.state, Queued | Leased) else task.state.at
    return TaskView(
        id=task.id,
        queue=task.queue,
        type=task.type,
        payload=task.payload,
        status=task.status,
        priority=task.priority,
        attempts=task.attempts,
        max_attempts=task.max_attempts,
        run_after=task.run_after,
        created_at=task.created_at,
        updated_at=task.updated_at,
        finished_at=finished_at,
        lease_owner=lease.holder if lease else None,
        lease_expires_at=lease.expires_at if lease else None,
        idempotency_key=task.idempotency_key,
        last_error=task.last_error if with_errors else None,
        errors=task.errors if with_errors else (),
        result=task.state.result if isinstance(task.state, Succeeded) else None,
    )


@attrs.frozen(kw_only=True)
class Enqueued:
    """The answer to an enqueue."""

    task: TaskView
    """Of a new task, or of the task that holds the idempotency key (without its payload)."""

    created: bool
    """False: the key was taken."""


@attrs.frozen(kw_only=True)
class LeasedTask:
    """A task handed to a worker."""

    task: TaskView
    """Without errors, last error and result, so that the size of a reply is bounded."""

    lease_token: LeaseToken
    lease_number: int
    """Rises with every lease of the task and is never reset: a fencing number."""

    attempt: int
    """1 for the first attempt of a cycle."""

    lease_duration: timedelta
    """What remains of the lease."""

    @property
    def ref(self) -> LeaseRef:
        """What names the lease in later calls."""
        return LeaseRef(task_id=self.task.id, lease_token=self.lease_token)


def leased_view(task: Task, lease: Lease, *, now: datetime) -> LeasedTask:
    """Return `task`, just leased under `lease`, as its worker sees it."""
    return LeasedTask(
        task=view(task, with_errors=False),
        lease_token=lease.token,
        lease_number=task.lease_number,
        attempt=task.attempts + 1,
        lease_duration=max(timedelta(0), lease.expires_at - now),
    )


@attrs.frozen(kw_only=True)
class Taken:
    """What one look gave to several callers."""

    tasks: tuple[list[LeasedTask], ...]
    """For each caller, in their order."""

    dry: bool
    """Nothing more is due for them."""


@attrs.frozen(kw_only=True)
class Beat:
    """The answer to a heartbeat of one lease that lives."""

    lease_duration: timedelta
    """What remains of the lease."""

    cancel_requested: bool
    """Somebody called the task off; its worker should stop."""


@attrs.frozen(kw_only=True)
class TaskPage:
    """One page of a list."""

    tasks: tuple[TaskView, ...]
    next_cursor: str
    """Empty: this was the last page."""


@attrs.frozen(kw_only=True)
class Depth:
    """How many tasks of a queue have a status."""

    count: int
    exact: bool
    """False: at least so many."""


@attrs.frozen(kw_only=True)
class QueueView:
    """A queue as operators see it."""

    name: QueueName
    paused: bool
    depths: dict[Status, Depth]
    """Statuses that no task has are left out."""

    oldest_due: timedelta | None
    """How long the task that has been due longest waits; None: nothing is due."""
