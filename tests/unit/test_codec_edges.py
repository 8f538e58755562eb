from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, TypeVar

import pytest
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from hypothesis import given
from hypothesis import strategies as st

import wire_values as wire
from leaseq.adapters.grpc import admin_codec, reply_codec, request_codec
from leaseq.adapters.grpc.generated import admin_pb2, queue_pb2
from leaseq.domain import validation
from leaseq.domain.errors import InvalidArgumentError, StorageError, TaskQueueError
from leaseq.domain.requests import (
    Complete,
    Fail,
    LeaseRef,
    LeaseRequest,
    NewTask,
    PageRequest,
    TaskFilter,
)
from leaseq.domain.task import TaskError
from leaseq.domain.views import Enqueued
from wire_values import NOON, TASK_ID

REF = LeaseRef(task_id=TASK_ID, lease_token="token")
REFUSED = StorageError("no")
M = TypeVar("M", bound=Message)


def carried(message: M) -> M:
    """Return `message` as the other side receives it."""
    return type(message).FromString(message.SerializeToString())


MONSTERS = [
    Duration(seconds=2**62),
    Duration(seconds=-(2**62)),
    Duration(seconds=1, nanos=-1),
    Duration(seconds=-1, nanos=1),
    Duration(nanos=10**9),
    Duration(nanos=-1),
    Duration(seconds=-1),
    Duration(seconds=2**63 - 1, nanos=2**31 - 1),
]


@pytest.mark.parametrize("duration", MONSTERS, ids=lambda d: f"{d.seconds}s{d.nanos}ns")
@pytest.mark.parametrize("field", ["delay", "retry.base", "retry.cap"])
def test_a_monstrous_duration_of_a_task_is_refused_by_name(duration: Duration, field: str) -> None:
    message = queue_pb2.EnqueueRequest(type="t")
    owner: Any = message
    *path, last = field.split(".")
    for name in path:
        owner = getattr(owner, name)
    getattr(owner, last).CopyFrom(duration)

    with pytest.raises(InvalidArgumentError) as refusal:
        validation.make_task(request_codec.read_new_task(message), task_id=TASK_ID, now=NOON)

    assert field in {violation.field for violation in refusal.value.violations}


@pytest.mark.parametrize("duration", MONSTERS, ids=lambda d: f"{d.seconds}s{d.nanos}ns")
def test_a_monstrous_duration_of_a_lease_is_refused_by_name(duration: Duration) -> None:
    message = queue_pb2.LeaseRequest(worker_id="w", lease_duration=duration)

    with pytest.raises(InvalidArgumentError) as refusal:
        validation.lease_terms(request_codec.read_lease_request(message))

    assert [violation.field for violation in refusal.value.violations] == ["lease_duration"]


@pytest.mark.parametrize(
    "timestamp",
    [
        Timestamp(seconds=2**62),
        Timestamp(nanos=-1),
        Timestamp(nanos=10**9),
        Timestamp(seconds=2**63 - 1, nanos=-(2**31)),
    ],
    ids=["too late", "negative nanos", "too many nanos", "all wrong"],
)
def test_a_monstrous_timestamp_is_refused_by_name(timestamp: Timestamp) -> None:
    message = queue_pb2.EnqueueRequest(type="t", run_after=timestamp)

    with pytest.raises(InvalidArgumentError) as refusal:
        validation.make_task(request_codec.read_new_task(message), task_id=TASK_ID, now=NOON)

    assert [violation.field for violation in refusal.value.violations] == ["run_after"]


def test_a_timestamp_before_all_time_means_now() -> None:
    message = queue_pb2.EnqueueRequest(type="t", run_after=Timestamp(seconds=-(2**62)))

    task = validation.make_task(request_codec.read_new_task(message), task_id=TASK_ID, now=NOON)

    assert task.run_after == NOON


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_any_duration_and_any_timestamp_can_be_read(seconds: int, nanos: int) -> None:
    message = queue_pb2.EnqueueRequest(delay=Duration(seconds=seconds, nanos=nanos))
    late = queue_pb2.EnqueueRequest(run_after=Timestamp(seconds=seconds, nanos=nanos))

    assert isinstance(request_codec.read_new_task(message).delay, timedelta)
    assert isinstance(request_codec.read_new_task(late).run_after, datetime)


@pytest.mark.parametrize("number", [2**40, -(2**40)], ids=["large", "small"])
def test_a_number_that_does_not_fit_is_refused_as_if_it_did(number: int) -> None:
    message = request_codec.write_new_task(NewTask(type="t", priority=number, max_attempts=number))

    with pytest.raises(InvalidArgumentError) as refusal:
        validation.make_task(request_codec.read_new_task(message), task_id=TASK_ID, now=NOON)

    assert [violation.field for violation in refusal.value.violations] == [
        "priority",
        "max_attempts",
    ]


def test_a_moment_of_another_zone_arrives_as_the_same_moment() -> None:
    far_east = datetime.max.replace(tzinfo=timezone(timedelta(hours=-12)))
    message = carried(request_codec.write_new_task(NewTask(type="t", run_after=far_east)))

    assert request_codec.read_new_task(message).run_after == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("write", "field"),
    [
        (lambda: request_codec.write_new_task(NewTask(type="t", payload="\ud800")), "payload"),
        (
            lambda: request_codec.write_new_task(
                NewTask(type="t", run_after=NOON.replace(tzinfo=None))
            ),
            "run_after",
        ),
        (
            lambda: request_codec.write_new_task(
                NewTask(type="t", run_after=NOON, delay=timedelta(0))
            ),
            "delay",
        ),
        (
            lambda: request_codec.write_settlement(Complete(ref=REF, result='"\ud800"')),
            "result",
        ),
        (
            lambda: admin_codec.write_task_list(
                TaskFilter(idempotency_key="\ud800"), PageRequest()
            ),
            "idempotency_key",
        ),
        (lambda: request_codec.read_settlement(queue_pb2.Settlement()), "settlement"),
        (
            lambda: admin_codec.read_task_filter(
                admin_pb2.ListTasksRequest(statuses=[queue_pb2.TASK_STATUS_DEAD, 99])  # type: ignore[list-item]  # a status of a later version
            ),
            "statuses[1]",
        ),
        (
            lambda: admin_codec.read_task_filter(
                admin_pb2.ListTasksRequest(statuses=[queue_pb2.TASK_STATUS_UNSPECIFIED])
            ),
            "statuses[0]",
        ),
    ],
    ids=[
        "surrogate payload",
        "naive run_after",
        "run_after and delay",
        "surrogate result",
        "surrogate filter",
        "no settlement",
        "unknown status",
        "unspecified status",
    ],
)
def test_what_cannot_be_said_is_refused_by_name(write: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        write()

    assert [violation.field for violation in refusal.value.violations] == [field]


@pytest.mark.parametrize("text", ["\ud800", "x" * 10**7], ids=["surrogate", "long"])
def test_a_name_that_cannot_be_sent_is_refused_as_if_it_were(text: str) -> None:
    message = request_codec.write_lease_request(
        LeaseRequest(worker_id=text, queues=("q", text), types=(text,)), call_id="c"
    )

    with pytest.raises(InvalidArgumentError) as refusal:
        validation.lease_terms(request_codec.read_lease_request(carried(message)))

    assert [violation.field for violation in refusal.value.violations] == [
        "worker_id",
        "queues[1]",
        "types[0]",
    ]


def test_an_error_that_cannot_be_stored_is_cleaned_before_it_is_sent() -> None:
    error = TaskError(type="T", message="boom\0\ud800", traceback="x" * 10**7)

    message = request_codec.write_settlement(Fail(ref=REF, error=error))

    assert message.fail.error.message == "boom\ufffd\ufffd"
    assert message.ByteSize() < 17 * 1024


@pytest.mark.parametrize(
    "read",
    [
        lambda: reply_codec.read_task(queue_pb2.Task(status=99)),  # type: ignore[arg-type]  # a status of a later version
        lambda: admin_codec.read_queue(admin_pb2.Queue(depths=[admin_pb2.QueueDepth()])),
    ],
    ids=["task", "queue"],
)
def test_a_status_of_a_later_server_is_a_storage_error(read: Callable[[], object]) -> None:
    with pytest.raises(StorageError, match="unknown here"):
        read()


def test_a_result_of_a_later_server_is_a_storage_error() -> None:
    assert isinstance(reply_codec.read_enqueue_result(queue_pb2.EnqueueResult()), StorageError)


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (
            lambda error: reply_codec.write_enqueue_results([error])[0],
            reply_codec.read_enqueue_result,
        ),
        (reply_codec.write_beat, reply_codec.read_beat),
        (reply_codec.write_settled, reply_codec.read_settled),
        (admin_codec.write_task_result, admin_codec.read_task_result),
    ],
    ids=["enqueue", "heartbeat", "settle", "admin"],
)
def test_an_item_of_a_batch_may_be_refused(
    write: Callable[[TaskQueueError], Message], read: Callable[[Any], object]
) -> None:
    answer = read(carried(write(REFUSED)))

    assert isinstance(answer, StorageError)
    assert str(answer) == "no"


@pytest.mark.parametrize(
    ("write", "read"),
    [
        (reply_codec.write_settled, reply_codec.read_settled),
        (admin_codec.write_task_result, admin_codec.read_task_result),
    ],
    ids=["settle", "admin"],
)
def test_an_item_of_a_batch_may_be_done(
    write: Callable[[None], Message], read: Callable[[Any], object]
) -> None:
    assert read(carried(write(None))) is None


def test_the_reply_to_a_batch_is_bounded() -> None:
    big = Enqueued(
        task=wire.with_payload('{"a": "' + "x" * (1024 * 1024 - 10) + '"}'), created=True
    )

    results = reply_codec.write_enqueue_results([big] * 1000)

    reply = queue_pb2.EnqueueBatchResponse(results=results)
    assert reply.ByteSize() < 4 * 1024 * 1024
    assert results[0].ok.task.payload == big.task.payload
    assert results[-1].ok.created
