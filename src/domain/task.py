"""What a task is: values only. How it may change is in `lifecycle`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

import attrs

from .ids import IdempotencyKey, JsonText, LeaseToken, QueueName, TaskId, TaskType, WorkerId
from .lease import Lease, utc
from .retry import RetryPolicy


class Status(StrEnum):
    """The name of each state, as storages, the wire and the CLI spell it."""

    QUEUED = "queued"
    LEASED = "leased"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    DEAD = "dead"
    CANCELLED = "cancelled"


@attrs.frozen
class Queued:
    """Waiting; due once `run_after` of the task has come."""


@attrs.frozen(kw_only=True)
class Leased:
    """Held by a worker, or by one that was lost: an expired lease stays until it is reaped."""

    lease: Lease
    cancel_requested_at: datetime | None = attrs.field(
        default=None, validator=attrs.validators.optional(utc)
    )


@attrs.frozen(kw_only=True)
class Succeeded:
    """Completed by a worker; `result` is JSON, or None where the handler gave none."""

    at: datetime = attrs.field(validator=utc)
    result: JsonText | None = None


@attrs.frozen(kw_only=True)
class Failed:
    """Given up because a worker said that trying again is useless."""

    at: datetime = attrs.field(validator=utc)


@attrs.frozen(kw_only=True)
class Dead:
    """Given up because all attempts are used."""

    at: datetime = attrs.field(validator=utc)


@attrs.frozen(kw_only=True)
class Cancelled:
    """Called off by an operator or a producer."""

    at: datetime = attrs.field(validator=utc)


Ended = Succeeded | Failed | Dead | Cancelled
State = Queued | Leased | Ended

_STATUS: dict[type[State], Status] = {
    Queued: Status.QUEUED,
    Leased: Status.LEASED,
    Succeeded: Status.SUCCEEDED,
    Failed: Status.FAILED,
    Dead: Status.DEAD,
    Cancelled: Status.CANCELLED,
}
TERMINAL = frozenset({Status.SUCCEEDED, Status.FAILED, Status.DEAD, Status.CANCELLED})


class Verb(StrEnum):
    """How a worker ends a lease by its own word."""

    COMPLETE = "complete"
    FAIL = "fail"
    RELEASE = "release"


@attrs.frozen(kw_only=True)
class Settled:
    """The last lease that a worker ended, and how: a repeat of it has no effect."""

    token: LeaseToken
    verb: Verb


@attrs.frozen(kw_only=True)
class TaskError:
    """What went wrong in an attempt. Cleaned and cut to 16 KiB, never refused."""

    type: str = ""
    message: str = ""
    traceback: str = ""


@attrs.frozen(kw_only=True)
class AttemptError:
    """Why one attempt failed. The text is clean: no NUL, no surrogate, at most 16 KiB in all."""

    attempt: int
    """1 for the first attempt of a cycle."""

    worker_id: WorkerId
    at: datetime = attrs.field(validator=utc)
    type: str
    """The class of what was raised, or a word of ours such as `LeaseExpired`."""

    message: str
    traceback: str = ""

    def __str__(self) -> str:
        """Return the error as one line would show it."""
        return f"{self.type}: {self.message}" if self.message else self.type


@attrs.frozen(kw_only=True)
class Task:
    """
    One stored unit of work.

    Equal when every field is equal. `version` rises by one with every change, so
    that (id, version) names one value.
    """

    id: TaskId
    queue: QueueName
    type: TaskType
    payload: JsonText | None
    """A JSON object; None where the reader left it out. Never changes."""

    payload_bytes: int
    """Of the payload's UTF-8; known even where the payload was left out."""

    fingerprint: str
    """Equal for equal type and payload: 64 hexadecimal digits."""

    idempotency_key: IdempotencyKey | None = None
    priority: int = 0
    """0 to 255; higher is leased first."""

    max_attempts: int
    retry: RetryPolicy
    state: State
    run_after: datetime = attrs.field(validator=utc)
    """When it became or becomes due. Kept while leased, so that a release keeps its place."""

    attempts: int = 0
    """Attempts of this cycle that have ended."""

    releases: int = 0
    """Releases of this cycle."""

    lease_number: int = 0
    """Leases so far, in all cycles; the fencing number that handlers may use."""

    errors: tuple[AttemptError, ...] = ()
    """The last ten failed attempts, oldest first, over all cycles."""

    settled: Settled | None = None
    version: int = 1
    created_at: datetime = attrs.field(validator=utc)
    updated_at: datetime = attrs.field(validator=utc)

    @property
    def status(self) -> Status:
        """The name of its state."""
        return _STATUS[type(self.state)]

    @property
    def last_error(self) -> str | None:
        """The newest error as one text, or None."""
        return str(self.errors[-1]) if self.errors else None


def is_due(task: Task, now: datetime) -> bool:
    """
    Whether a worker may lease `task` at `now`.

    Storages answer the same question in their own language; the conformance suite
    holds their answer to a table of edges.
    """
    return isinstance(task.state, Queued) and task.run_after <= now


def held_state(task: Task) -> Leased:
    """
    Return the state of a task that somebody holds.

    Raises:
        ValueError: nobody does.
    """
    match task.state:
        case Leased() as held:
            return held
        case _:
            raise ValueError(f"task {task.id} is {task.status}")


def leasing_order(task: Task) -> tuple[int, datetime, str]:
    """Return the key by which due tasks of a queue are leased, smallest first."""
    return (-task.priority, task.run_after, task.id)


def unreadable_row(worker_id: WorkerId, *, now: datetime) -> AttemptError:
    """Return the error that a stored row gets when it cannot be read as a task."""
    return AttemptError(
        attempt=1,
        worker_id=worker_id,
        at=now,
        type="UnreadableTask",
        message="what is stored cannot be read as a task; it was set aside unread",
    )
