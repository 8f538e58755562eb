"""Values for tests, of which a test says only what matters to it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Final

import attrs

from ..domain.ids import IdempotencyKey, JsonText, LeaseToken, QueueName, TaskId, TaskType, WorkerId
from ..domain.json_text import fingerprint, normalise_object
from ..domain.lease import Lease
from ..domain.limits import DEFAULT_ATTEMPTS, MAX_LEASE_PAYLOAD_BYTES
from ..domain.retry import RetryPolicy
from ..domain.storing import Demand
from ..domain.task import AttemptError, Leased, Queued, Settled, State, Task

NOON: Final = datetime(2026, 3, 14, 12, tzinfo=UTC)
MICROSECOND: Final = timedelta(microseconds=1)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)

EMAILS: Final = QueueName("emails")
IMAGES: Final = QueueName("images")
SEND: Final = TaskType("send")
RESIZE: Final = TaskType("resize")

_COUNTED_FROM: Final = 0x80000000
_numbers = count()


def a_task_id(number: int | None = None) -> TaskId:
    """Return a UUIDv7 that sorts as `number` does (below 2**31); without one, after all others."""
    time_of_making = _COUNTED_FROM + next(_numbers) if number is None else number
    # Letters at the end, since some callers spell ids in capitals.
    return TaskId(f"{time_of_making:08x}-0000-7000-8000-00000000cafe")


def a_lease(
    token: str = "lease-1", *, holder: str = "worker-1", until: datetime = NOON + 30 * SECOND
) -> Lease:
    """Return a lease."""
    return Lease(token=LeaseToken(token), holder=WorkerId(holder), expires_at=until)


def leased_until(end: datetime, *, cancel_requested_at: datetime | None = None) -> Leased:
    """Return the state of a task whose lease ends at `end`."""
    return Leased(lease=a_lease(until=end), cancel_requested_at=cancel_requested_at)


def an_error(
    message: str = "boom",
    *,
    attempt: int = 1,
    worker_id: str = "worker-1",
    at: datetime = NOON,
    type: str = "ValueError",  # noqa: A002  the field's name
    traceback: str = "",
) -> AttemptError:
    """Return why an attempt failed."""
    return AttemptError(
        attempt=attempt,
        worker_id=WorkerId(worker_id),
        at=at,
        type=type,
        message=message,
        traceback=traceback,
    )


def a_task(  # noqa: PLR0913  a builder names every field
    *,
    id: TaskId | None = None,  # noqa: A002  the field's name
    queue: QueueName = EMAILS,
    type: TaskType = SEND,  # noqa: A002  the field's name
    payload: str = "{}",
    key: str | None = None,
    priority: int = 0,
    max_attempts: int = DEFAULT_ATTEMPTS,
    state: State | None = None,
    run_after: datetime = NOON,
    attempts: int = 0,
    releases: int = 0,
    lease_number: int | None = None,
    errors: Iterable[AttemptError] = (),
    settled: Settled | None = None,
    version: int = 1,
) -> Task:
    """Return a task, by default a queued one that was made at 11 and is due from noon on."""
    if lease_number is None:
        lease_number = 1 if isinstance(state, Leased) else 0
    return attrs.evolve(
        _plain_task(type, normalise_object(payload)),
        id=id or a_task_id(),
        queue=queue,
        idempotency_key=None if key is None else IdempotencyKey(key),
        priority=priority,
        max_attempts=max_attempts,
        state=state or Queued(),
        run_after=run_after,
        attempts=attempts,
        releases=releases,
        lease_number=lease_number,
        errors=tuple(errors),
        settled=settled,
        version=version,
    )


def a_demand(
    *,
    queue: QueueName = EMAILS,
    types: Iterable[TaskType] = (),
    grants: Iterable[Lease] | None = None,
    max_bytes: int = MAX_LEASE_PAYLOAD_BYTES,
) -> Demand:
    """Return what a claim is for, by default one task of any type."""
    return Demand(
        queue=queue,
        types=tuple(types),
        grants=(a_lease(),) if grants is None else tuple(grants),
        max_bytes=max_bytes,
    )


def some_grants(number: int, *, until: datetime = NOON + 30 * SECOND) -> tuple[Lease, ...]:
    """Return `number` leases, each with a token of its own."""
    return tuple(a_lease(f"grant-{index}", until=until) for index in range(1, number + 1))


def _plain_task(type_: TaskType, payload: JsonText) -> Task:
    return Task(
        id=a_task_id(0),
        queue=EMAILS,
        type=type_,
        payload=payload,
        payload_bytes=len(payload.encode()),
        fingerprint=fingerprint(type_, payload),
        max_attempts=DEFAULT_ATTEMPTS,
        retry=RetryPolicy(),
        state=Queued(),
        run_after=NOON,
        created_at=NOON - HOUR,
        updated_at=NOON - MINUTE,
    )
