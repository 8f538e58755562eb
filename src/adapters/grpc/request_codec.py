"""
What producers and workers ask for, between messages and values.

With `reply_codec` and `admin_codec` the only place that sees both. Each value has a `write_`
function to its message and a `read_` function back, and `read_(write_(value)) == value` to
the microsecond. Reading judges nothing that a value can hold: validation does.
"""

from __future__ import annotations

from datetime import timedelta
from typing import assert_never

from google.protobuf.duration_pb2 import Duration

from ...domain.error_text import clean_error
from ...domain.errors import FieldViolation, InvalidArgumentError
from ...domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
    Settlement,
)
from ...domain.task import TaskError
from .generated import queue_pb2 as pb
from .scalars import (
    int32,
    read_moment,
    read_span,
    require_text,
    short_text,
    write_moment,
    write_span,
)


def write_new_task(new: NewTask) -> pb.EnqueueRequest:
    """
    Return `new` as a message.

    Raises:
        InvalidArgumentError: the message cannot say it: `run_after` together with
            `delay` or without a time zone, or text that UTF-8 cannot spell.
    """
    require_text(payload=new.payload, idempotency_key=new.idempotency_key)
    message = pb.EnqueueRequest(
        queue=short_text(new.queue),
        type=short_text(new.type),
        payload=new.payload,
        idempotency_key=new.idempotency_key,
        max_attempts=None if new.max_attempts is None else int32(new.max_attempts),
        priority=int32(new.priority),
        allow_different_payload=new.allow_different_payload,
        task_id=short_text(new.task_id),
    )
    _write_due(new, message)
    if new.retry_base is not None:
        message.retry.base.CopyFrom(write_span(new.retry_base))
    if new.retry_cap is not None:
        message.retry.cap.CopyFrom(write_span(new.retry_cap))
    return message


def _write_due(new: NewTask, message: pb.EnqueueRequest) -> None:
    if new.delay is not None and new.run_after is not None:
        raise _fault("delay", "must not be given together with run_after")
    if new.delay is not None:
        message.delay.CopyFrom(write_span(new.delay))
    if new.run_after is not None:
        if new.run_after.utcoffset() is None:
            raise _fault("run_after", "must say its time zone")
        message.run_after.CopyFrom(write_moment(new.run_after))


def read_new_task(message: pb.EnqueueRequest) -> NewTask:
    """Return what `message` asks to enqueue."""
    return NewTask(
        queue=message.queue,
        type=message.type,
        payload=message.payload,
        idempotency_key=message.idempotency_key,
        max_attempts=message.max_attempts if message.HasField("max_attempts") else None,
        delay=read_span(message.delay) if message.HasField("delay") else None,
        run_after=read_moment(message.run_after) if message.HasField("run_after") else None,
        priority=message.priority,
        retry_base=read_span(message.retry.base) if message.retry.HasField("base") else None,
        retry_cap=read_span(message.retry.cap) if message.retry.HasField("cap") else None,
        allow_different_payload=message.allow_different_payload,
        task_id=message.task_id,
    )


def write_lease_request(request: LeaseRequest, *, call_id: str) -> pb.LeaseRequest:
    """Return `request` as a message of a call that EndWait may name."""
    return pb.LeaseRequest(
        worker_id=short_text(request.worker_id),
        queues=[short_text(queue) for queue in request.queues],
        types=[short_text(type_) for type_ in request.types],
        lease_duration=_write_optional_span(request.lease_duration),
        max_tasks=int32(request.max_tasks),
        wait=write_span(request.wait),
        strict_order=request.strict_order,
        call_id=call_id,
    )


def read_lease_request(message: pb.LeaseRequest) -> LeaseRequest:
    """Return what `message` asks to lease."""
    return LeaseRequest(
        worker_id=message.worker_id,
        queues=tuple(message.queues),
        types=tuple(message.types),
        lease_duration=_read_duration(message),
        max_tasks=message.max_tasks if message.HasField("max_tasks") else 1,
        wait=read_span(message.wait),
        strict_order=message.strict_order,
    )


def write_heartbeat_request(request: HeartbeatRequest) -> pb.HeartbeatRequest:
    """Return `request` as a message."""
    return pb.HeartbeatRequest(
        worker_id=short_text(request.worker_id),
        leases=[write_lease_ref(ref) for ref in request.leases],
        lease_duration=_write_optional_span(request.lease_duration),
    )


def read_heartbeat_request(message: pb.HeartbeatRequest) -> HeartbeatRequest:
    """Return which leases `message` asks to extend."""
    return HeartbeatRequest(
        worker_id=message.worker_id,
        leases=tuple(
            LeaseRef(task_id=ref.task_id, lease_token=ref.lease_token) for ref in message.leases
        ),
        lease_duration=_read_duration(message),
    )


def write_lease_ref(ref: LeaseRef) -> pb.LeaseRef:
    """Return `ref` as a message."""
    return pb.LeaseRef(task_id=short_text(ref.task_id), lease_token=short_text(ref.lease_token))


def write_settlement(settlement: Settlement) -> pb.Settlement:
    """
    Return `settlement` as a message; an error is cleaned and cut as it would be stored.

    Raises:
        InvalidArgumentError: a result cannot be spelt in UTF-8.
    """
    ref = write_lease_ref(settlement.ref)
    task_id, lease_token = ref.task_id, ref.lease_token
    match settlement:
        case Complete(result=result):
            require_text(result=result)
            complete = pb.CompleteRequest(task_id=task_id, lease_token=lease_token, result=result)
            return pb.Settlement(complete=complete)
        case Fail(error=error, retry=retry, retry_after=retry_after):
            type_, text, traceback = clean_error(error.type, error.message, error.traceback)
            fail = pb.FailRequest(
                task_id=task_id,
                lease_token=lease_token,
                error=pb.TaskError(type=type_, message=text, traceback=traceback),
                retry=retry,
                retry_after=_write_optional_span(retry_after),
            )
            return pb.Settlement(fail=fail)
        case Release():
            release = pb.ReleaseRequest(
                task_id=task_id, lease_token=lease_token, undelivered=settlement.undelivered
            )
            return pb.Settlement(release=release)
        case _:
            assert_never(settlement)


def read_settlement(message: pb.Settlement) -> Settlement:
    """
    Return how `message` ends an attempt.

    Raises:
        InvalidArgumentError: it says none of the ways that are known here.
    """
    match message.WhichOneof("settlement"):
        case "complete":
            return read_complete(message.complete)
        case "fail":
            return read_fail(message.fail)
        case "release":
            return read_release(message.release)
        case _:
            raise _fault("settlement", "must be one of complete, fail and release")


def read_complete(message: pb.CompleteRequest) -> Complete:
    """Return the end that `message` tells of."""
    return Complete(ref=_read_ref(message), result=message.result)


def read_fail(message: pb.FailRequest) -> Fail:
    """Return the end that `message` tells of."""
    return Fail(
        ref=_read_ref(message),
        error=TaskError(
            type=message.error.type,
            message=message.error.message,
            traceback=message.error.traceback,
        ),
        retry=message.retry if message.HasField("retry") else True,
        retry_after=read_span(message.retry_after) if message.HasField("retry_after") else None,
    )


def read_release(message: pb.ReleaseRequest) -> Release:
    """Return the end that `message` tells of."""
    return Release(ref=_read_ref(message), undelivered=message.undelivered)


def _read_ref(message: pb.CompleteRequest | pb.FailRequest | pb.ReleaseRequest) -> LeaseRef:
    return LeaseRef(task_id=message.task_id, lease_token=message.lease_token)


def _write_optional_span(span: timedelta | None) -> Duration | None:
    return None if span is None else write_span(span)


def _read_duration(message: pb.LeaseRequest | pb.HeartbeatRequest) -> timedelta | None:
    return read_span(message.lease_duration) if message.HasField("lease_duration") else None


def _fault(field: str, description: str) -> InvalidArgumentError:
    return InvalidArgumentError([FieldViolation(field=field, description=description)])
