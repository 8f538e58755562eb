"""
What the queue answers producers and workers, between messages and values.

Written like `request_codec`. In batches an error is a value in its item's place.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...domain.errors import StorageError, TaskQueueError
from ...domain.ids import (
    IdempotencyKey,
    JsonText,
    LeaseToken,
    QueueName,
    TaskId,
    TaskType,
    WorkerId,
)
from ...domain.limits import MAX_LEASE_PAYLOAD_BYTES
from ...domain.task import AttemptError
from ...domain.views import Beat, Enqueued, LeasedTask, TaskView
from .generated import queue_pb2 as pb
from .refusals import read_refusal, write_refusal
from .scalars import (
    read_moment,
    read_span,
    read_told_status,
    write_moment,
    write_span,
    write_status,
)


def write_task(task: TaskView) -> pb.Task:
    """Return `task` as a message; what is None in it is not set."""
    finished_at, lease_expires_at = task.finished_at, task.lease_expires_at
    return pb.Task(
        id=task.id,
        queue=task.queue,
        type=task.type,
        payload=task.payload,
        status=write_status(task.status),
        priority=task.priority,
        attempts=task.attempts,
        max_attempts=task.max_attempts,
        run_after=write_moment(task.run_after),
        created_at=write_moment(task.created_at),
        updated_at=write_moment(task.updated_at),
        finished_at=None if finished_at is None else write_moment(finished_at),
        lease_expires_at=None if lease_expires_at is None else write_moment(lease_expires_at),
        lease_owner=task.lease_owner,
        idempotency_key=task.idempotency_key,
        last_error=task.last_error,
        errors=[_write_attempt_error(error) for error in task.errors],
        result=task.result,
    )


def read_task(message: pb.Task) -> TaskView:
    """Return the task that `message` shows."""
    leased = message.HasField("lease_expires_at")
    return TaskView(
        id=TaskId(message.id),
        queue=QueueName(message.queue),
        type=TaskType(message.type),
        payload=JsonText(message.payload) if message.payload else None,
        status=read_told_status(message.status),
        priority=message.priority,
        attempts=message.attempts,
        max_attempts=message.max_attempts,
        run_after=read_moment(message.run_after),
        created_at=read_moment(message.created_at),
        updated_at=read_moment(message.updated_at),
        finished_at=(read_moment(message.finished_at) if message.HasField("finished_at") else None),
        lease_owner=WorkerId(message.lease_owner) if message.lease_owner else None,
        lease_expires_at=read_moment(message.lease_expires_at) if leased else None,
        idempotency_key=(
            IdempotencyKey(message.idempotency_key) if message.idempotency_key else None
        ),
        last_error=message.last_error or None,
        errors=tuple(_read_attempt_error(error) for error in message.errors),
        result=JsonText(message.result) if message.result else None,
    )


def _write_attempt_error(error: AttemptError) -> pb.AttemptError:
    return pb.AttemptError(
        attempt=error.attempt,
        worker_id=error.worker_id,
        at=write_moment(error.at),
        type=error.type,
        message=error.message,
        traceback=error.traceback,
    )


def _read_attempt_error(message: pb.AttemptError) -> AttemptError:
    return AttemptError(
        attempt=message.attempt,
        worker_id=WorkerId(message.worker_id),
        at=read_moment(message.at),
        type=message.type,
        message=message.message,
        traceback=message.traceback,
    )


def write_enqueued(enqueued: Enqueued) -> pb.EnqueueResponse:
    """Return `enqueued` as a message."""
    return pb.EnqueueResponse(task=write_task(enqueued.task), created=enqueued.created)


def read_enqueued(message: pb.EnqueueResponse) -> Enqueued:
    """Return what became of an enqueue."""
    return Enqueued(task=read_task(message.task), created=message.created)


def write_enqueue_results(
    outcomes: Sequence[Enqueued | TaskQueueError],
) -> list[pb.EnqueueResult]:
    """
    Return the results of a batch.

    Once 3 MiB of payload are in them the rest go without, so that the reply stays under
    what clients accept.
    """
    room = MAX_LEASE_PAYLOAD_BYTES
    results = []
    for outcome in outcomes:
        if isinstance(outcome, TaskQueueError):
            results.append(pb.EnqueueResult(refused=write_refusal(outcome)))
            continue
        message = write_enqueued(outcome)
        room -= len((outcome.task.payload or "").encode())
        if room < 0:
            message.task.ClearField("payload")
        results.append(pb.EnqueueResult(ok=message))
    return results


def read_enqueue_result(message: pb.EnqueueResult) -> Enqueued | TaskQueueError:
    """Return the result of one item of a batch."""
    match message.WhichOneof("outcome"):
        case "ok":
            return read_enqueued(message.ok)
        case "refused":
            return read_refusal(message.refused)
        case _:
            return StorageError("the server's answer is none of those that are known here")


def write_leased_task(leased: LeasedTask) -> pb.LeasedTask:
    """Return `leased` as a message."""
    return pb.LeasedTask(
        task=write_task(leased.task),
        lease_token=leased.lease_token,
        lease_number=leased.lease_number,
        attempt=leased.attempt,
        lease_duration=write_span(leased.lease_duration),
    )


def read_leased_task(message: pb.LeasedTask) -> LeasedTask:
    """Return a task handed to this worker."""
    return LeasedTask(
        task=read_task(message.task),
        lease_token=LeaseToken(message.lease_token),
        lease_number=message.lease_number,
        attempt=message.attempt,
        lease_duration=read_span(message.lease_duration),
    )


def write_beat(beat: Beat | TaskQueueError) -> pb.HeartbeatResult:
    """Return the answer to the heartbeat of one lease."""
    if isinstance(beat, TaskQueueError):
        return pb.HeartbeatResult(lost=write_refusal(beat))
    return pb.HeartbeatResult(
        lease_duration=write_span(beat.lease_duration), cancel_requested=beat.cancel_requested
    )


def read_beat(message: pb.HeartbeatResult) -> Beat | TaskQueueError:
    """Return the answer to the heartbeat of one lease."""
    if message.HasField("lost"):
        return read_refusal(message.lost)
    return Beat(
        lease_duration=read_span(message.lease_duration),
        cancel_requested=message.cancel_requested,
    )


def write_settled(outcome: TaskQueueError | None) -> pb.SettleResult:
    """Return what became of one settlement."""
    return pb.SettleResult(refused=None if outcome is None else write_refusal(outcome))


def read_settled(message: pb.SettleResult) -> TaskQueueError | None:
    """Return what became of one settlement; None: it is done."""
    return read_refusal(message.refused) if message.HasField("refused") else None
