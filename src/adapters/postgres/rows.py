"""
Rows and tasks, both ways.

Every row that `COLUMNS` reads becomes a task or is told as unreadable, alone. JSON is
read as text and stays so, but for errors, of which most tasks have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from ...domain.ids import (
    IdempotencyKey,
    JsonText,
    LeaseToken,
    QueueName,
    TaskId,
    TaskType,
    WorkerId,
)
from ...domain.lease import Lease
from ...domain.retry import RetryPolicy
from ...domain.storing import Found
from ...domain.task import (
    Cancelled,
    Dead,
    Failed,
    Leased,
    Queued,
    Settled,
    State,
    Status,
    Succeeded,
    Task,
    Verb,
)
from ..error_history import from_json, to_json
from .binary import UNREADABLE_MOMENT, Bigints, Moments, Texts

Row = tuple[Any, ...]
"""What `COLUMNS` or `COLUMNS_WITHOUT_PAYLOAD` read, in that order."""

_MICROSECOND: Final = timedelta(microseconds=1)
# What broken values raise on the way into a task: wrong JSON, types, names, times, bounds.
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)

# Of the table under the name `t`. The id comes first and as text, which can always be read.
_COLUMNS: Final = """
    t.id::text, t.queue, t.type, {payload}, t.payload_bytes, t.fingerprint, t.idempotency_key,
    t.priority, t.run_after, t.attempts, t.max_attempts, t.retry_base_us, t.retry_cap_us,
    t.releases, t.lease_number, t.version, t.created_at, t.updated_at, t.errors::text,
    t.settled_token, t.settled_as, t.status, t.lease_token, t.lease_owner, t.lease_expires_at,
    t.cancel_requested_at, t.finished_at, {result}
"""
COLUMNS: Final = _COLUMNS.format(payload="t.payload::text", result="t.result::text")
COLUMNS_WITHOUT_PAYLOAD: Final = _COLUMNS.format(payload="NULL::text", result="NULL::text")


def found(rows: Iterable[Row]) -> Found:
    """Return the tasks that rows hold, in their order, and the ids of those that hold none."""
    tasks: list[Task] = []
    unreadable: list[TaskId] = []
    for row in rows:
        task = read(row)
        if task is None:
            unreadable.append(TaskId(row[0]))
        else:
            tasks.append(task)
    return Found(tasks=tuple(tasks), unreadable=tuple(unreadable))


def read(row: Row) -> Task | None:
    """Return the task that a row holds, or None if it holds none."""
    try:
        return _task(row)
    except _UNREADABLE:
        return None


def _task(row: Row) -> Task:
    (id_, queue, type_, payload, payload_bytes, fingerprint, key, *counts_and_times) = row[:18]
    (priority, run_after, attempts, max_attempts, retry_base, retry_cap) = counts_and_times[:6]
    (releases, lease_number, version, created_at, updated_at) = counts_and_times[6:]
    errors, settled_token, settled_as, *state = row[18:]
    return Task(
        id=TaskId(id_),
        queue=QueueName(queue),
        type=TaskType(type_),
        payload=payload,
        payload_bytes=payload_bytes,
        fingerprint=fingerprint,
        idempotency_key=None if key is None else IdempotencyKey(key),
        priority=priority,
        max_attempts=max_attempts,
        retry=_retry_policy(retry_base, retry_cap),
        state=_state(*state),
        run_after=run_after,
        attempts=attempts,
        releases=releases,
        lease_number=lease_number,
        errors=from_json(errors),
        settled=None if settled_token is None else _settled(settled_token, settled_as),
        version=version,
        created_at=created_at,
        updated_at=updated_at,
    )


def _state(
    status: str,
    token: str | None,
    holder: str | None,
    expires_at: datetime | None,
    cancel_requested_at: datetime | None,
    finished_at: datetime | None,
    result: str | None,
) -> State:
    match Status(status):
        case Status.QUEUED:
            return Queued()
        case Status.LEASED:
            return _leased(token, holder, expires_at, cancel_requested_at)
        case Status.SUCCEEDED:
            return Succeeded(
                at=_present(finished_at), result=None if result is None else JsonText(result)
            )
        case Status.FAILED:
            return Failed(at=_present(finished_at))
        case Status.DEAD:
            return Dead(at=_present(finished_at))
        case Status.CANCELLED:
            return Cancelled(at=_present(finished_at))


def _leased(
    token: str | None,
    holder: str | None,
    expires_at: datetime | None,
    cancel_requested_at: datetime | None,
) -> Leased:
    if token is None or holder is None or cancel_requested_at is UNREADABLE_MOMENT:
        raise ValueError("a leased task has no whole lease")
    return Leased(
        lease=Lease(
            token=LeaseToken(token), holder=WorkerId(holder), expires_at=_present(expires_at)
        ),
        cancel_requested_at=cancel_requested_at,
    )


def _present(moment: datetime | None) -> datetime:
    if moment is None:
        raise ValueError("a moment is missing")
    return moment


def _settled(token: str, verb: str) -> Settled:
    return Settled(token=LeaseToken(token), verb=Verb(verb))


@lru_cache(maxsize=128)
def _retry_policy(base: int, cap: int) -> RetryPolicy:
    return RetryPolicy(base=base * _MICROSECOND, cap=cap * _MICROSECOND)


# --- writing: one array a column

Arrays = dict[str, Texts | Bigints | Moments]
"""Parameters of a statement, each an array with one value a task."""


def new_rows(tasks: Sequence[Task]) -> Arrays:
    """Return every column of tasks that are to be stored."""
    return {
        **states(tasks),
        "queues": Texts(task.queue for task in tasks),
        "types": Texts(task.type for task in tasks),
        "payloads": Texts(task.payload for task in tasks),
        "payload_bytes": Bigints(task.payload_bytes for task in tasks),
        "fingerprints": Texts(task.fingerprint for task in tasks),
        "keys": Texts(task.idempotency_key for task in tasks),
        "priorities": Bigints(task.priority for task in tasks),
        "max_attempts": Bigints(task.max_attempts for task in tasks),
        "retry_bases": Bigints(task.retry.base // _MICROSECOND for task in tasks),
        "retry_caps": Bigints(task.retry.cap // _MICROSECOND for task in tasks),
        "created_at": Moments(task.created_at for task in tasks),
        "last_errors": Texts(task.last_error for task in tasks),
        "errors": Texts(to_json(task.errors) for task in tasks),
    }


def states(tasks: Sequence[Task]) -> Arrays:
    """Return the columns that change in the life of a task, but for its errors."""
    settled = [task.settled for task in tasks]
    return {
        **renewals(tasks),
        "statuses": Texts(task.status.value for task in tasks),
        "run_after": Moments(task.run_after for task in tasks),
        "attempts": Bigints(task.attempts for task in tasks),
        "releases": Bigints(task.releases for task in tasks),
        "lease_numbers": Bigints(task.lease_number for task in tasks),
        "tokens": Texts(None if lease is None else lease.token for lease in map(_lease, tasks)),
        "holders": Texts(None if lease is None else lease.holder for lease in map(_lease, tasks)),
        "settled_tokens": Texts(None if last is None else last.token for last in settled),
        "settled_as": Texts(None if last is None else last.verb.value for last in settled),
        "finished_at": Moments(_finished_at(task) for task in tasks),
        "results": Texts(_result(task) for task in tasks),
    }


def renewals(tasks: Sequence[Task]) -> Arrays:
    """Return the columns that a heartbeat changes, or a request to cancel."""
    return {
        "ids": Texts(task.id for task in tasks),
        "versions": Bigints(task.version for task in tasks),
        "expires_at": Moments(_expires_at(task) for task in tasks),
        "cancel_requested_at": Moments(_cancel_requested_at(task) for task in tasks),
        "updated_at": Moments(task.updated_at for task in tasks),
    }


def _lease(task: Task) -> Lease | None:
    return task.state.lease if isinstance(task.state, Leased) else None


def _expires_at(task: Task) -> datetime | None:
    return task.state.lease.expires_at if isinstance(task.state, Leased) else None


def _cancel_requested_at(task: Task) -> datetime | None:
    return task.state.cancel_requested_at if isinstance(task.state, Leased) else None


def _finished_at(task: Task) -> datetime | None:
    return None if isinstance(task.state, Queued | Leased) else task.state.at


def _result(task: Task) -> str | None:
    return task.state.result if isinstance(task.state, Succeeded) else None
