"""
The one validator: every door gives its verdict.

Each function checks all of a request and either returns it with its defaults filled
in, in the domain's own types, or raises one error that names every fault.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs

from .errors import FieldViolation, InvalidArgumentError
from .ids import IdempotencyKey, JsonText, LeaseToken, QueueName, TaskId, TaskType, WorkerId
from .json_text import EMPTY_OBJECT, RefusedJsonError, fingerprint, normalise, normalise_object
from .limits import (
    DEFAULT_ATTEMPTS,
    DEFAULT_LEASE,
    DEFAULT_QUEUE,
    DEFAULT_RETRY_BASE,
    DEFAULT_RETRY_CAP,
    MAX_ATTEMPTS,
    MAX_BATCH,
    MAX_DELAY,
    MAX_KEY_BYTES,
    MAX_LEASE,
    MAX_NAMES_PER_LEASE,
    MAX_PRIORITY,
    MAX_RETRY_BASE,
    MAX_RETRY_CAP,
    MAX_TOKEN_CHARACTERS,
    MAX_WAIT,
    MIN_ATTEMPTS,
    MIN_LEASE,
    MIN_PRIORITY,
    MIN_RETRY_BASE,
    NAME_PATTERN,
)
from .requests import LeaseRef, LeaseRequest, NewTask, PageRequest, TaskFilter
from .retry import RetryPolicy
from .task import Queued, Task

_NAME: Final = re.compile(NAME_PATTERN)
_DEFAULT_RETRY: Final = RetryPolicy()
_UUID: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID7: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


class _Faults:
    """Collects what is wrong with a request."""

    def __init__(self) -> None:
        self._violations: list[FieldViolation] = []

    def add(self, field: str, description: str) -> None:
        self._violations.append(FieldViolation(field=field, description=description))

    def require(self, field: str, description: str, *, holds: bool) -> None:
        if not holds:
            self.add(field, description)

    def name(self, field: str, value: str) -> None:
        self.require(
            field,
            "must be 1 to 100 of the characters A-Z a-z 0-9 . _ : -",
            holds=isinstance(value, str) and _NAME.fullmatch(value) is not None,
        )

    def bounded(self, field: str, value: int, low: int, high: int) -> None:
        self.require(field, f"must be from {low} to {high}", holds=low <= value <= high)

    def span(
        self, field: str, value: timedelta, low: timedelta, high: timedelta, words: str
    ) -> None:
        self.require(field, f"must be from {words}", holds=low <= value <= high)

    def raise_if_any(self) -> None:
        if self._violations:
            raise InvalidArgumentError(self._violations)


def make_task(new: NewTask, *, task_id: TaskId, now: datetime) -> Task:
    """
    Return the task that `new` asks for, queued at `now`.

    Args:
        task_id: its id, unless `new` brings one.

    Raises:
        InvalidArgumentError: naming every fault.
    """
    faults = _Faults()
    queue = new.queue or DEFAULT_QUEUE
    faults.name("queue", queue)
    faults.name("type", new.type)
    payload = _payload(faults, new.payload)
    _check_key(faults, new.idempotency_key)
    chosen_id = _chosen_id(faults, new)
    faults.bounded("priority", new.priority, MIN_PRIORITY, MAX_PRIORITY)
    attempts = DEFAULT_ATTEMPTS if new.max_attempts is None else new.max_attempts
    faults.bounded("max_attempts", attempts, MIN_ATTEMPTS, MAX_ATTEMPTS)
    retry = _retry_policy(faults, new)
    run_after = _run_after(faults, new, now)
    faults.raise_if_any()
    return Task(
        id=chosen_id or task_id,
        queue=QueueName(queue),
        type=TaskType(new.type),
        payload=payload,
        payload_bytes=len(payload.encode()),
        fingerprint=fingerprint(TaskType(new.type), payload),
        idempotency_key=IdempotencyKey(new.idempotency_key) if new.idempotency_key else None,
        priority=new.priority,
        max_attempts=attempts,
        retry=retry,
        state=Queued(),
        run_after=run_after,
        created_at=now,
        updated_at=now,
    )


@attrs.frozen(kw_only=True)
class LeaseTerms:
    """A Lease request with its defaults filled in."""

    worker_id: WorkerId
    queues: tuple[QueueName, ...]
    types: tuple[TaskType, ...]
    lease_duration: timedelta
    max_tasks: int
    wait: timedelta
    strict_order: bool


def lease_terms(request: LeaseRequest) -> LeaseTerms:
    """
    Return `request` with its defaults filled in; names that come twice are kept once.

    Raises:
        InvalidArgumentError: naming every fault.
    """
    faults = _Faults()
    faults.name("worker_id", request.worker_id)
    queues = request.queues or (DEFAULT_QUEUE,)
    _check_names(faults, "queues", queues)
    _check_names(faults, "types", request.types)
    duration = _lease_duration(faults, request.lease_duration)
    faults.bounded("max_tasks", request.max_tasks, 1, MAX_BATCH)
    faults.require("wait", "must not be negative", holds=request.wait >= timedelta(0))
    faults.raise_if_any()
    return LeaseTerms(
        worker_id=WorkerId(request.worker_id),
        queues=tuple(QueueName(queue) for queue in dict.fromkeys(queues)),
        types=tuple(TaskType(type_) for type_ in dict.fromkeys(request.types)),
        lease_duration=duration,
        max_tasks=request.max_tasks,
        wait=min(request.wait, MAX_WAIT),
        strict_order=request.strict_order,
    )


def heartbeat_duration(worker_id: str, lease_duration: timedelta | None) -> timedelta:
    """
    Return for how long a heartbeat asks.

    Raises:
        InvalidArgumentError: naming every fault.
    """
    faults = _Faults()
    faults.name("worker_id", worker_id)
    duration = _lease_duration(faults, lease_duration)
    faults.raise_if_any()
    return duration


def lease_ref(ref: LeaseRef) -> tuple[TaskId, LeaseToken]:
    """
    Return which task and which lease `ref` names.

    Raises:
        InvalidArgumentError: the id is no UUID, or the token is empty or too long.
    """
    faults = _Faults()
    _check_task_id(faults, "task_id", ref.task_id)
    faults.require(
        "lease_token",
        f"must be 1 to {MAX_TOKEN_CHARACTERS} characters",
        holds=1 <= len(ref.lease_token) <= MAX_TOKEN_CHARACTERS,
    )
    faults.raise_if_any()
    return TaskId(ref.task_id.lower()), LeaseToken(ref.lease_token)


def task_id(text: str) -> TaskId:
    """
    Return the task id that `text` spells.

    Raises:
        InvalidArgumentError: it is no UUID.
    """
    faults = _Faults()
    _check_task_id(faults, "task_id", text)
    faults.raise_if_any()
    return TaskId(text.lower())


def result(text: str) -> JsonText | None:
    """
    Return a handler's result as it is kept.

    Raises:
        InvalidArgumentError: it is not JSON that leaseq keeps.
    """
    if not text:
        return None
    try:
        return normalise(text)
    except RefusedJsonError as error:
        raise InvalidArgumentError([_refusal("result", error)]) from None


def retry_after(span: timedelta | None) -> timedelta | None:
    """
    Return the wait that a Fail asks for.

    Raises:
        InvalidArgumentError: it is negative or longer than 365 days.
    """
    faults = _Faults()
    if span is not None:
        faults.span("retry_after", span, timedelta(0), MAX_DELAY, "0 to 365 days")
    faults.raise_if_any()
    return span


def batch_size(field: str, items: Sequence[object]) -> None:
    """
    Check how many items one call carries.

    Raises:
        InvalidArgumentError: more than 1000.
    """
    faults = _Faults()
    faults.require(field, f"must hold at most {MAX_BATCH} items", holds=len(items) <= MAX_BATCH)
    faults.raise_if_any()


def queue_name(text: str) -> QueueName:
    """
    Return the queue that `text` names.

    Raises:
        InvalidArgumentError: it is no name.
    """
    faults = _Faults()
    faults.name("queue", text)
    faults.raise_if_any()
    return QueueName(text)


def task_list(wanted: TaskFilter, page: PageRequest) -> TaskId | None:
    """
    Check what an operator asks to see, and return the id that the page starts after.

    Raises:
        InvalidArgumentError: naming every fault.
    """
    faults = _Faults()
    if wanted.queue:
        faults.name("queue", wanted.queue)
    if wanted.type:
        faults.name("type", wanted.type)
    _check_key(faults, wanted.idempotency_key)
    faults.require("page_size", f"must be from 1 to {MAX_BATCH}", holds=1 <= page.size <= MAX_BATCH)
    if page.cursor:
        _check_task_id(faults, "cursor", page.cursor)
    faults.raise_if_any()
    return TaskId(page.cursor.lower()) if page.cursor else None


def _payload(faults: _Faults, text: str) -> JsonText:
    try:
        return normalise_object(text) if text else EMPTY_OBJECT
    except RefusedJsonError as error:
        refusal = _refusal("payload", error)
        faults.add(refusal.field, refusal.description)
        return EMPTY_OBJECT


def _refusal(field: str, error: RefusedJsonError) -> FieldViolation:
    return FieldViolation(field=f"{field}{error.path}", description=error.why)


def _check_key(faults: _Faults, key: str) -> None:
    if not key:
        return
    try:
        size = len(key.encode())
    except UnicodeEncodeError:
        faults.add("idempotency_key", "must not hold a lone surrogate")
        return
    faults.require(
        "idempotency_key",
        f"must be at most {MAX_KEY_BYTES} bytes of UTF-8",
        holds=size <= MAX_KEY_BYTES,
    )
    faults.require(
        "idempotency_key", "must not begin or end with a blank", holds=key == key.strip()
    )
    faults.require(
        "idempotency_key",
        "must not hold a control character",
        holds=not any(unicodedata.category(character) == "Cc" for character in key),
    )


def _check_names(faults: _Faults, field: str, names: Sequence[str]) -> None:
    faults.require(
        field,
        f"must hold at most {MAX_NAMES_PER_LEASE} names",
        holds=len(names) <= MAX_NAMES_PER_LEASE,
    )
    for index, name in enumerate(names[:MAX_NAMES_PER_LEASE]):
        faults.name(f"{field}[{index}]", name)


def _check_task_id(faults: _Faults, field: str, text: str) -> None:
    # What is asked for by id alone comes in no request that would have refused another type.
    is_uuid = isinstance(text, str) and _UUID.fullmatch(text.lower()) is not None
    faults.require(field, "must be a UUID", holds=is_uuid)


def _lease_duration(faults: _Faults, duration: timedelta | None) -> timedelta:
    if duration is None:
        return DEFAULT_LEASE
    faults.span("lease_duration", duration, MIN_LEASE, MAX_LEASE, "1 s to 12 h")
    return duration


def _chosen_id(faults: _Faults, new: NewTask) -> TaskId | None:
    if not new.task_id:
        return None
    chosen = new.task_id.lower()
    faults.require("task_id", "must be a UUIDv7", holds=_UUID7.fullmatch(chosen) is not None)
    return TaskId(chosen)


def _retry_policy(faults: _Faults, new: NewTask) -> RetryPolicy:
    base, cap = new.retry_base, new.retry_cap
    if base is None and cap is None:
        return _DEFAULT_RETRY
    if base is None:
        base = DEFAULT_RETRY_BASE if cap is None else min(DEFAULT_RETRY_BASE, cap)
    if cap is None:
        cap = max(DEFAULT_RETRY_CAP, base)
    if not MIN_RETRY_BASE <= base <= MAX_RETRY_BASE:
        field = "retry.cap" if new.retry_base is None else "retry.base"
        faults.add(field, "must be from 1 ms to 1 day")
        return RetryPolicy()
    if not base <= cap <= MAX_RETRY_CAP:
        faults.add("retry.cap", "must be from retry.base to 30 days")
        return RetryPolicy()
    return RetryPolicy(base=base, cap=cap)


def _run_after(faults: _Faults, new: NewTask, now: datetime) -> datetime:
    if new.delay is not None and new.run_after is not None:
        faults.add("delay", "must not be given together with run_after")
        return now
    if new.delay is not None:
        faults.span("delay", new.delay, timedelta(0), MAX_DELAY, "0 to 365 days")
        return now + min(max(new.delay, timedelta(0)), MAX_DELAY)
    if new.run_after is None:
        return now
    if new.run_after.tzinfo is None:
        faults.add("run_after", "must say its time zone")
        return now
    if new.run_after <= now:
        return now
    if new.run_after - now > MAX_DELAY:
        faults.add("run_after", "must be at most 365 days ahead")
        return now
    return new.run_after.astimezone(UTC)
