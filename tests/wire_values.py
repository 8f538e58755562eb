"""What travels between servers and clients, as hypothesis strategies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TypeVar

import attrs
from hypothesis import strategies as st

from leaseq.domain.errors import (
    ContendedError,
    FieldViolation,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    LeaseLostError,
    LostReason,
    OverloadedError,
    StorageError,
    StorageUnavailableError,
    TaskFinishedError,
    TaskIdReusedError,
    TaskNotDeadError,
    TaskNotFinishedError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from leaseq.domain.ids import (
    IdempotencyKey,
    JsonText,
    LeaseToken,
    QueueName,
    TaskId,
    TaskType,
    WorkerId,
)
from leaseq.domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    PageRequest,
    Release,
    Settlement,
    TaskFilter,
)
from leaseq.domain.task import AttemptError, Status, TaskError
from leaseq.domain.views import Beat, Depth, Enqueued, LeasedTask, QueueView, TaskPage, TaskView

TASK_ID = TaskId("01890a5d-ac96-774b-bcce-b302099a8057")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
some_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
spans = st.timedeltas()
moments = st.datetimes(timezones=st.just(UTC))
int32s = st.integers(-(2**31), 2**31 - 1)
int64s = st.integers(-(2**63), 2**63 - 1)
statuses = st.sampled_from(Status)
task_ids = st.uuids().map(lambda uuid: TaskId(str(uuid)))


T = TypeVar("T")


def optional(values: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | values


@st.composite
def new_tasks(draw: st.DrawFn) -> NewTask:
    delay, run_after = draw(
        st.tuples(spans, st.none()) | st.tuples(st.none(), moments) | st.just((None, None))
    )
    return draw(
        st.builds(
            NewTask,
            type=texts,
            payload=texts,
            queue=texts,
            idempotency_key=texts,
            allow_different_payload=st.booleans(),
            priority=int32s,
            max_attempts=optional(int32s),
            delay=st.just(delay),
            run_after=st.just(run_after),
            task_id=texts,
            retry_base=optional(spans),
            retry_cap=optional(spans),
        )
    )


names = st.lists(texts, max_size=3).map(tuple)
lease_requests = st.builds(
    LeaseRequest,
    worker_id=texts,
    queues=names,
    types=names,
    lease_duration=optional(spans),
    max_tasks=int32s,
    wait=spans,
    strict_order=st.booleans(),
)
lease_refs = st.builds(LeaseRef, task_id=texts, lease_token=texts)
heartbeat_requests = st.builds(
    HeartbeatRequest,
    worker_id=texts,
    leases=st.lists(lease_refs, max_size=3).map(tuple),
    lease_duration=optional(spans),
)
clean_texts = texts.map(lambda text: text.replace("\0", ""))
task_errors = st.builds(
    TaskError,
    type=clean_texts.filter(bool),
    message=clean_texts,
    traceback=clean_texts,
)
settlements: st.SearchStrategy[Settlement] = st.one_of(
    st.builds(Complete, ref=lease_refs, result=texts),
    st.builds(
        Fail,
        ref=lease_refs,
        error=task_errors,
        retry=st.booleans(),
        retry_after=optional(spans),
    ),
    st.builds(Release, ref=lease_refs),
)
task_filters = st.builds(
    TaskFilter,
    queue=texts,
    type=texts,
    statuses=st.lists(statuses, max_size=3).map(tuple),
    idempotency_key=texts,
)
page_requests = st.builds(PageRequest, size=int32s, cursor=texts, with_payload=st.booleans())

attempt_errors = st.builds(
    AttemptError,
    attempt=int32s,
    worker_id=texts.map(WorkerId),
    at=moments,
    type=texts,
    message=texts,
    traceback=texts,
)
task_views = st.builds(
    TaskView,
    id=task_ids,
    queue=texts.map(QueueName),
    type=texts.map(TaskType),
    payload=optional(some_text.map(JsonText)),
    status=statuses,
    priority=int32s,
    attempts=int32s,
    max_attempts=int32s,
    run_after=moments,
    created_at=moments,
    updated_at=moments,
    finished_at=optional(moments),
    lease_owner=optional(some_text.map(WorkerId)),
    lease_expires_at=optional(moments),
    idempotency_key=optional(some_text.map(IdempotencyKey)),
    last_error=optional(some_text),
    errors=st.lists(attempt_errors, max_size=2).map(tuple),
    result=optional(some_text.map(JsonText)),
)
enqueueds = st.builds(Enqueued, task=task_views, created=st.booleans())
leased_tasks = st.builds(
    LeasedTask,
    task=task_views,
    lease_token=texts.map(LeaseToken),
    lease_number=int64s,
    attempt=int32s,
    lease_duration=spans,
)
beats = st.builds(Beat, lease_duration=spans, cancel_requested=st.booleans())
pages = st.builds(TaskPage, tasks=st.lists(task_views, max_size=2).map(tuple), next_cursor=texts)
queue_views = st.builds(
    QueueView,
    name=texts.map(QueueName),
    paused=st.booleans(),
    depths=st.dictionaries(statuses, st.builds(Depth, count=int64s, exact=st.booleans())),
    oldest_due=optional(spans),
)

violations = st.builds(FieldViolation, field=texts, description=texts)
errors: st.SearchStrategy[TaskQueueError] = st.one_of(
    st.lists(violations, min_size=1, max_size=3).map(InvalidArgumentError),
    task_ids.map(TaskNotFoundError),
    st.builds(
        IdempotencyKeyReusedError,
        queue=texts.map(QueueName),
        key=texts.map(IdempotencyKey),
        task_id=task_ids,
    ),
    task_ids.map(TaskIdReusedError),
    st.builds(LeaseLostError, task_ids, st.sampled_from(LostReason)),
    st.builds(TaskNotDeadError, task_ids, statuses),
    st.builds(TaskFinishedError, task_ids, statuses),
    st.builds(TaskNotFinishedError, task_ids, statuses),
    st.builds(
        OverloadedError,
        st.just("TOO_MANY_WAITERS"),
        texts,
        retry_after=st.timedeltas(min_value=timedelta(microseconds=1)),
    ),
    texts.map(ContendedError),
    task_ids.map(UnreadableTaskError),
    texts.map(StorageError),
    texts.map(StorageUnavailableError),
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
EVERYTHING = TaskView(
    id=TASK_ID,
    queue=QueueName("emails"),
    type=TaskType("send"),
    payload=JsonText('{"a": 1}'),
    status=Status.SUCCEEDED,
    priority=7,
    attempts=2,
    max_attempts=5,
    run_after=NOON,
    created_at=NOON,
    updated_at=NOON,
    finished_at=NOON,
    lease_owner=WorkerId("w"),
    lease_expires_at=NOON,
    idempotency_key=IdempotencyKey("k"),
    last_error="Boom: it went wrong",
    errors=(
        AttemptError(
            attempt=1, worker_id=WorkerId("w"), at=NOON, type="Boom", message="m", traceback="t"
        ),
    ),
    result=JsonText("[1]"),
)
"""No real task has all of this; every field of the message is set."""


def with_payload(payload: str) -> TaskView:
    return attrs.evolve(EVERYTHING, payload=JsonText(payload))


ERROR_SAMPLES: tuple[TaskQueueError, ...] = (
    InvalidArgumentError([FieldViolation(field="queue", description="must be a name")]),
    TaskNotFoundError(TASK_ID),
    IdempotencyKeyReusedError(queue=QueueName("q"), key=IdempotencyKey("ключ"), task_id=TASK_ID),
    TaskIdReusedError(TASK_ID),
    LeaseLostError(TASK_ID, LostReason.LEASE_EXPIRED),
    TaskNotDeadError(TASK_ID, "queued"),
    TaskFinishedError(TASK_ID, "succeeded"),
    TaskNotFinishedError(TASK_ID, "leased"),
    OverloadedError("QUEUE_FULL", "the queue is full", retry_after=timedelta(seconds=2)),
    ContendedError(f"task {TASK_ID}"),
    UnreadableTaskError(TASK_ID),
    StorageUnavailableError("the storage is away"),
)
"""One of each class that has no subclass."""
