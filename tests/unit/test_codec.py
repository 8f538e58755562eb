from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from hypothesis import given

import wire_values as wire
from leaseq.adapters.grpc import admin_codec, reply_codec, request_codec
from leaseq.adapters.grpc.generated import admin_pb2, queue_pb2
from leaseq.domain.errors import StorageError
from leaseq.domain.ids import LeaseToken, QueueName
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
from leaseq.domain.task import Status, TaskError
from leaseq.domain.views import Beat, Depth, Enqueued, LeasedTask, QueueView, TaskPage, TaskView
from wire_values import EVERYTHING, TASK_ID

REF = LeaseRef(task_id=TASK_ID, lease_token="token")
SECOND = timedelta(seconds=1)


M = TypeVar("M", bound=Message)


def carried(message: M) -> M:
    """Return `message` as the other side receives it."""
    return type(message).FromString(message.SerializeToString())


@given(wire.new_tasks())
def test_a_new_task_arrives_as_it_was_sent(new: NewTask) -> None:
    message = carried(request_codec.write_new_task(new))

    assert request_codec.read_new_task(message) == new


@given(wire.lease_requests)
def test_a_lease_request_arrives_as_it_was_sent(request: LeaseRequest) -> None:
    message = carried(request_codec.write_lease_request(request, call_id="c"))

    assert request_codec.read_lease_request(message) == request


@given(wire.heartbeat_requests)
def test_a_heartbeat_arrives_as_it_was_sent(request: HeartbeatRequest) -> None:
    message = carried(request_codec.write_heartbeat_request(request))

    assert request_codec.read_heartbeat_request(message) == request


@given(wire.settlements)
def test_a_settlement_arrives_as_it_was_sent(settlement: Settlement) -> None:
    message = carried(request_codec.write_settlement(settlement))

    assert request_codec.read_settlement(message) == settlement


@given(wire.task_filters, wire.page_requests)
def test_a_list_request_arrives_as_it_was_sent(wanted: TaskFilter, page: PageRequest) -> None:
    message = carried(admin_codec.write_task_list(wanted, page))

    assert admin_codec.read_task_filter(message) == wanted
    assert admin_codec.read_page_request(message) == page


@given(wire.task_views)
def test_a_task_arrives_as_it_was_sent(task: TaskView) -> None:
    assert reply_codec.read_task(carried(reply_codec.write_task(task))) == task


@given(wire.leased_tasks)
def test_a_leased_task_arrives_as_it_was_sent(leased: LeasedTask) -> None:
    assert reply_codec.read_leased_task(carried(reply_codec.write_leased_task(leased))) == leased


@given(wire.enqueueds)
def test_the_answer_to_an_enqueue_arrives_as_it_was_sent(enqueued: Enqueued) -> None:
    [result] = reply_codec.write_enqueue_results([enqueued])

    assert reply_codec.read_enqueue_result(carried(result)) == enqueued


@given(wire.beats)
def test_a_beat_arrives_as_it_was_sent(beat: Beat) -> None:
    assert reply_codec.read_beat(carried(reply_codec.write_beat(beat))) == beat


@given(wire.pages)
def test_a_page_arrives_as_it_was_sent(page: TaskPage) -> None:
    assert admin_codec.read_page(carried(admin_codec.write_page(page))) == page


@given(wire.queue_views)
def test_a_queue_arrives_as_it_was_sent(queue: QueueView) -> None:
    assert admin_codec.read_queue(carried(admin_codec.write_queue(queue))) == queue


REFUSED = StorageError("no")


@pytest.mark.parametrize(
    "message",
    [
        request_codec.write_new_task(
            NewTask(
                type="t",
                payload="{}",
                queue="q",
                idempotency_key="k",
                task_id=TASK_ID,
                allow_different_payload=True,
                priority=1,
                max_attempts=1,
                delay=SECOND,
                retry_base=SECOND,
                retry_cap=SECOND,
            )
        ),
        request_codec.write_lease_request(
            LeaseRequest(
                worker_id="w",
                queues=("q",),
                types=("t",),
                lease_duration=SECOND,
                max_tasks=1,
                wait=SECOND,
                strict_order=True,
            ),
            call_id="c",
        ),
        request_codec.write_heartbeat_request(
            HeartbeatRequest(worker_id="w", leases=(REF,), lease_duration=SECOND)
        ),
        request_codec.write_settlement(Complete(ref=REF, result="1")).complete,
        request_codec.write_settlement(
            Fail(
                ref=REF,
                error=TaskError(type="T", message="m", traceback="t"),
                retry_after=SECOND,
            )
        ).fail,
        request_codec.write_settlement(Release(ref=REF, undelivered=True)).release,
        reply_codec.write_task(EVERYTHING),
        reply_codec.write_enqueued(Enqueued(task=EVERYTHING, created=True)),
        reply_codec.write_leased_task(
            LeasedTask(
                task=EVERYTHING,
                lease_token=LeaseToken("l"),
                lease_number=1,
                attempt=1,
                lease_duration=SECOND,
            )
        ),
        reply_codec.write_settled(REFUSED),
        admin_codec.write_task_list(
            TaskFilter(queue="q", type="t", statuses=(Status.DEAD,), idempotency_key="k"),
            PageRequest(size=1, cursor="c", with_payload=True),
        ),
        admin_codec.write_page(TaskPage(tasks=(EVERYTHING,), next_cursor="c")),
        admin_codec.write_task_result(REFUSED),
        admin_codec.write_queue(
            QueueView(
                name=QueueName("q"),
                paused=True,
                depths={Status.DEAD: Depth(count=1, exact=False)},
                oldest_due=SECOND,
            )
        ),
    ],
    ids=lambda message: message.DESCRIPTOR.name,
)
def test_no_field_of_a_message_is_forgotten(message: Message) -> None:
    unset = unset_fields(message)

    assert unset - {"EnqueueRequest.run_after"} == set()


def unset_fields(message: Message) -> set[str]:
    present = {field.name: value for field, value in message.ListFields()}
    unset = {
        f"{message.DESCRIPTOR.name}.{field.name}"
        for field in message.DESCRIPTOR.fields
        if field.name not in present and message.DESCRIPTOR.name != "Refusal"
    }
    for value in present.values():
        parts = value if isinstance(value, list | tuple) or hasattr(value, "add") else [value]
        for part in parts:
            if isinstance(part, Message) and part.DESCRIPTOR.file.package == "leaseq.v1":
                unset |= unset_fields(part)
    return unset


def test_what_is_not_set_reads_as_the_default() -> None:
    assert request_codec.read_new_task(queue_pb2.EnqueueRequest(type="t")) == NewTask(
        type="t", payload=""
    )
    assert request_codec.read_lease_request(queue_pb2.LeaseRequest(worker_id="w")) == LeaseRequest(
        worker_id="w"
    )
    assert request_codec.read_fail(queue_pb2.FailRequest()) == Fail(
        ref=LeaseRef(task_id="", lease_token="")
    )
    assert admin_codec.read_page_request(admin_pb2.ListTasksRequest()) == PageRequest()


def test_what_is_set_to_nothing_is_not_taken_for_unset() -> None:
    message = queue_pb2.EnqueueRequest(
        max_attempts=0, delay=Duration(), retry=queue_pb2.RetryPolicy(base=Duration())
    )

    new = request_codec.read_new_task(message)

    assert (new.max_attempts, new.delay, new.retry_base) == (0, timedelta(0), timedelta(0))
    assert new.retry_cap is None
