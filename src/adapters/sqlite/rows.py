"""
Rows as tasks and tasks as rows, both ways in one place.

Text is read as bytes and times as microseconds since 1970. A row that breaks any rule of
its columns or of the domain's values is unreadable, and named; nothing here raises for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, assert_never

import attrs

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

Row = tuple[Any, ...]
"""As the driver hands it over: integers, bytes, None."""


@attrs.frozen
class _Stored:
    """A row by the names of its columns: all of them but `last_error`, which `errors` tells."""

    id: Any
    queue: Any
    type: Any
    payload_bytes: Any
    fingerprint: Any
    idempotency_key: Any
    status: Any
    priority: Any
    run_after: Any
    attempts: Any
    max_attempts: Any
    retry_base_us: Any
    retry_cap_us: Any
    releases: Any
    lease_number: Any
    lease_token: Any
    lease_owner: Any
    lease_expires_at: Any
    cancel_requested_at: Any
    settled_token: Any
    settled_as: Any
    version: Any
    created_at: Any
    updated_at: Any
    finished_at: Any
    errors: Any
    result: Any
    payload: Any
    """These two may be large and come last, where a read can leave them out."""


_READ: Final = tuple(field.name for field in attrs.fields(_Stored))

COLUMNS: Final = (*_READ, "last_error")
WHOLE: Final = ", ".join(_READ)
"""What to select for `found`."""

WITHOUT_PAYLOAD: Final = ", ".join([*_READ[:-2], "NULL", "NULL"])
"""The same, with neither payload nor result."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)
_CANONICAL_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
END_OF_TIME: Final = (datetime(9999, 1, 1, tzinfo=UTC) - _EPOCH) // _MICROSECOND
"""Stored times lie before this."""

_SMALL: Final = 2**31
"""Above every count that the wire can carry."""

_NO_LEASE: Final = dict.fromkeys(
    ("lease_token", "lease_owner", "lease_expires_at", "cancel_requested_at")
)

_UNREADABLE: Final = (ValueError, TypeError, OverflowError)


def found(rows: Iterable[Row]) -> Found:
    """Return the rows as tasks, in their order, and the ids of those that are none."""
    tasks: list[Task] = []
    unreadable: list[TaskId] = []
    for row in rows:
        task = readable(row)
        if task is None:
            unreadable.append(row_id(row))
        else:
            tasks.append(task)
    return Found(tasks=tuple(tasks), unreadable=tuple(unreadable))


def readable(row: Row) -> Task | None:
    """Return the row as a task, or None when it is none."""
    try:
        return _task(row)
    except _UNREADABLE:
        return None


def row_id(row: Row) -> TaskId:
    """Return the id of a row; one that is no UTF-8 comes back as it was from `id_bytes`."""
    raw: bytes = row[0]
    return TaskId(raw.decode(errors="surrogateescape"))


def id_bytes(task_id: TaskId) -> bytes:
    """Return the id as it is stored, for `CAST(? AS TEXT)`."""
    return task_id.encode(errors="surrogateescape")


def microseconds(moment: datetime) -> int:
    """Return `moment` as it is stored."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(stored: object) -> datetime:
    """
    Return a stored time.

    Raises:
        OverflowError: it is later than the year 9999.
        TypeError: it is no integer.
    """
    if not isinstance(stored, int):
        raise TypeError("a time is no integer")
    return _EPOCH + timedelta(microseconds=stored)


def row(task: Task) -> dict[str, object]:
    """Return the values of every column, by its name."""
    state = task.state
    leased = lease_values(task, state) if isinstance(state, Leased) else _NO_LEASE
    finished_at = None if isinstance(state, Queued | Leased) else microseconds(state.at)
    settled = task.settled
    return {
        **leased,
        "id": task.id,
        "queue": task.queue,
        "type": task.type,
        "payload_bytes": task.payload_bytes,
        "fingerprint": task.fingerprint,
        "idempotency_key": task.idempotency_key,
        "status": task.status.value,
        "priority": task.priority,
        "run_after": microseconds(task.run_after),
        "attempts": task.attempts,
        "max_attempts": task.max_attempts,
        "retry_base_us": task.retry.base // _MICROSECOND,
        "retry_cap_us": task.retry.cap // _MICROSECOND,
        "releases": task.releases,
        "lease_number": task.lease_number,
        "settled_token": None if settled is None else settled.token,
        "settled_as": None if settled is None else settled.verb.value,
        "version": task.version,
        "created_at": microseconds(task.created_at),
        "updated_at": microseconds(task.updated_at),
        "finished_at": finished_at,
        "last_error": task.last_error,
        "errors": to_json(task.errors),
        "result": state.result if isinstance(state, Succeeded) else None,
        "payload": task.payload,
    }


def lease_values(task: Task, state: Leased) -> dict[str, object]:
    """Return, of `row(task)`, what a lease or a heartbeat changes."""
    cancelled_at = state.cancel_requested_at
    return {
        "lease_number": task.lease_number,
        "lease_token": state.lease.token,
        "lease_owner": state.lease.holder,
        "lease_expires_at": microseconds(state.lease.expires_at),
        "cancel_requested_at": None if cancelled_at is None else microseconds(cancelled_at),
        "version": task.version,
        "updated_at": microseconds(task.updated_at),
    }


# --- reading


def _task(values: Row) -> Task:
    stored = _Stored(*values)
    payload = _text_or_none(stored.payload)
    key = _text_or_none(stored.idempotency_key)
    return Task(
        id=_id(stored.id),
        queue=QueueName(_text(stored.queue)),
        type=TaskType(_text(stored.type)),
        payload=None if payload is None else JsonText(payload),
        payload_bytes=_count(stored.payload_bytes),
        fingerprint=_text(stored.fingerprint),
        idempotency_key=None if key is None else IdempotencyKey(key),
        priority=_count(stored.priority),
        max_attempts=_count(stored.max_attempts),
        retry=RetryPolicy(base=_span(stored.retry_base_us), cap=_span(stored.retry_cap_us)),
        state=_state(stored),
        run_after=moment(stored.run_after),
        attempts=_count(stored.attempts),
        releases=_count(stored.releases),
        lease_number=_count(stored.lease_number),
        errors=from_json(_text(stored.errors)),
        settled=_settled(stored),
        version=_count(stored.version, below=2**62),
        created_at=moment(stored.created_at),
        updated_at=moment(stored.updated_at),
    )


def _state(stored: _Stored) -> State:
    status = Status(_text(stored.status))
    match status:
        case Status.QUEUED:
            return Queued()
        case Status.LEASED:
            return _leased(stored)
        case Status.SUCCEEDED:
            result = _text_or_none(stored.result)
            return Succeeded(
                at=moment(stored.finished_at), result=None if result is None else JsonText(result)
            )
        case Status.FAILED:
            return Failed(at=moment(stored.finished_at))
        case Status.DEAD:
            return Dead(at=moment(stored.finished_at))
        case Status.CANCELLED:
            return Cancelled(at=moment(stored.finished_at))
        case _:
            assert_never(status)


def _leased(stored: _Stored) -> Leased:
    cancelled_at = stored.cancel_requested_at
    return Leased(
        lease=Lease(
            token=LeaseToken(_text(stored.lease_token)),
            holder=WorkerId(_text(stored.lease_owner)),
            expires_at=moment(stored.lease_expires_at),
        ),
        cancel_requested_at=None if cancelled_at is None else moment(cancelled_at),
    )


def _settled(stored: _Stored) -> Settled | None:
    if stored.settled_token is None:
        return None
    return Settled(
        token=LeaseToken(_text(stored.settled_token)), verb=Verb(_text(stored.settled_as))
    )


def _id(value: object) -> TaskId:
    text = _text(value)
    if not _CANONICAL_ID.fullmatch(text):
        raise ValueError("an id is no UUID in its canonical form")
    return TaskId(text)


def _text(value: object) -> str:
    if not isinstance(value, bytes):
        raise TypeError("a text is none")
    return value.decode()


def _text_or_none(value: object) -> str | None:
    return None if value is None else _text(value)


def _count(value: object, *, below: int = _SMALL) -> int:
    if not isinstance(value, int) or not 0 <= value < below:
        raise ValueError("a count is no number, or beyond reason")
    return value


def _span(value: object) -> timedelta:
    return timedelta(microseconds=_count(value, below=2**62))
