"""The methods of the service TaskQueue, carried out by the `TaskQueue` of this process."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import attrs

from ...domain.errors import InvalidArgumentError, TaskQueueError
from ...domain.limits import DEFAULT_LEASE
from ...domain.ports import TaskQueue, Undo
from ...domain.requests import LeaseRequest, Settlement
from ...domain.views import LeasedTask
from . import methods
from .calls import Calls, Handler, Parcel
from .generated import queue_pb2 as pb
from .options import DEADLINE_MARGIN
from .reply_codec import (
    write_beat,
    write_enqueue_results,
    write_enqueued,
    write_leased_task,
    write_settled,
    write_task,
)
from .request_codec import (
    read_complete,
    read_fail,
    read_heartbeat_request,
    read_lease_request,
    read_new_task,
    read_release,
    read_settlement,
)
from .waits import WaitName, Waits

_NO_WAIT: Final = timedelta(0)

_log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class QueueCalls:
    """Answers producers and workers."""

    _queue: TaskQueue
    _undo: Undo
    _waits: Waits

    def handlers(self, calls: Calls) -> dict[str, Handler]:
        """Return how each method is handled, by name."""
        replying = calls.replying
        return {
            methods.ENQUEUE.name: replying(methods.ENQUEUE, self._enqueue),
            methods.ENQUEUE_BATCH.name: replying(methods.ENQUEUE_BATCH, self._enqueue_batch),
            methods.LEASE.name: calls.delivering(methods.LEASE, self._lease),
            methods.END_WAIT.name: replying(methods.END_WAIT, self._end_wait),
            methods.HEARTBEAT.name: replying(methods.HEARTBEAT, self._heartbeat),
            methods.COMPLETE.name: replying(methods.COMPLETE, self._complete),
            methods.FAIL.name: replying(methods.FAIL, self._fail),
            methods.RELEASE.name: replying(methods.RELEASE, self._release),
            methods.SETTLE.name: replying(methods.SETTLE, self._settle),
            methods.GET_TASK.name: replying(methods.GET_TASK, self._get_task),
        }

    async def _enqueue(self, request: pb.EnqueueRequest) -> pb.EnqueueResponse:
        [outcome] = await self._queue.enqueue([read_new_task(request)])
        if isinstance(outcome, TaskQueueError):
            raise outcome
        return write_enqueued(outcome)

    async def _enqueue_batch(self, request: pb.EnqueueBatchRequest) -> pb.EnqueueBatchResponse:
        outcomes = await self._queue.enqueue([read_new_task(task) for task in request.tasks])
        return pb.EnqueueBatchResponse(results=write_enqueue_results(outcomes))

    async def _lease(
        self, message: pb.LeaseRequest, time_left: timedelta | None
    ) -> Parcel[pb.LeaseResponse]:
        name = _wait_name(message) if message.call_id else None
        request = _ending_in_time(read_lease_request(message), time_left)
        lease = self._queue.lease(request)
        leased = await (self._waits.finish(lease, name=name) if request.wait > _NO_WAIT else lease)
        # Of what has lost more than half of its time, the work would hardly be done.
        needed = (request.lease_duration or DEFAULT_LEASE) / 2
        await self._take_back([each for each in leased if each.lease_duration < needed])
        fresh = [each for each in leased if each.lease_duration >= needed]
        return Parcel(
            reply=pb.LeaseResponse(tasks=[write_leased_task(each) for each in fresh]),
            if_lost=partial(self._take_back, fresh),
        )

    async def _take_back(self, leased: Sequence[LeasedTask]) -> None:
        if not leased:
            return
        try:
            await self._undo.undo_leases([each.ref for each in leased])
        except TaskQueueError as error:
            _log.warning("%d undelivered leases must expire: %s", len(leased), error)

    async def _end_wait(self, request: pb.EndWaitRequest) -> pb.EndWaitResponse:
        self._waits.end(_wait_name(request))
        return pb.EndWaitResponse()

    async def _heartbeat(self, request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        beats = await self._queue.heartbeat(read_heartbeat_request(request))
        return pb.HeartbeatResponse(results=[write_beat(beat) for beat in beats])

    async def _complete(self, request: pb.CompleteRequest) -> pb.CompleteResponse:
        await self._settle_one(read_complete(request))
        return pb.CompleteResponse()

    async def _fail(self, request: pb.FailRequest) -> pb.FailResponse:
        await self._settle_one(read_fail(request))
        return pb.FailResponse()

    async def _release(self, request: pb.ReleaseRequest) -> pb.ReleaseResponse:
        await self._settle_one(read_release(request))
        return pb.ReleaseResponse()

    async def _settle_one(self, settlement: Settlement) -> None:
        [refusal] = await self._queue.settle([settlement])
        if refusal is not None:
            raise refusal

    async def _settle(self, request: pb.SettleRequest) -> pb.SettleResponse:
        read = [_readable(message) for message in request.settlements]
        sound = [item for item in read if not isinstance(item, InvalidArgumentError)]
        answers = iter(await self._queue.settle(sound))
        outcomes = [
            item if isinstance(item, InvalidArgumentError) else next(answers) for item in read
        ]
        return pb.SettleResponse(results=[write_settled(outcome) for outcome in outcomes])

    async def _get_task(self, request: pb.GetTaskRequest) -> pb.GetTaskResponse:
        return pb.GetTaskResponse(task=write_task(await self._queue.get(request.task_id)))


def _wait_name(message: pb.LeaseRequest | pb.EndWaitRequest) -> WaitName:
    return WaitName(message.worker_id, message.call_id)


def _ending_in_time(request: LeaseRequest, time_left: timedelta | None) -> LeaseRequest:
    if time_left is None or request.wait <= time_left - DEADLINE_MARGIN:
        return request
    # A negative wait is for the validator to refuse.
    longest = max(_NO_WAIT, time_left - DEADLINE_MARGIN)
    return attrs.evolve(request, wait=min(request.wait, longest))


def _readable(message: pb.Settlement) -> Settlement | InvalidArgumentError:
    try:
        return read_settlement(message)
    except InvalidArgumentError as refusal:
        return refusal
