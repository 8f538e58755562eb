"""
The queue behind the wire: what a caller holds is like the service itself.

Requests are not judged here; that is the server's, so that all its doors agree.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from typing import Final

import attrs
import grpc

from ...domain import validation
from ...domain.errors import TaskQueueError
from ...domain.limits import DEFAULT_LEASE, MAX_WAIT
from ...domain.ports import Ids
from ...domain.requests import (
    HeartbeatRequest,
    LeaseRequest,
    NewTask,
    Release,
    Settlement,
)
from ...domain.views import Beat, Enqueued, LeasedTask, TaskView
from ..ids import RandomIds, RandomJitter
from . import methods
from .admin_client import GrpcTaskAdmin
from .caller import Caller
from .enqueues import Enqueues, Outcome, Sender
from .generated import queue_pb2 as pb
from .merging import AioMerger, ThreadMerger
from .parts import send_in_parts
from .reply_codec import (
    read_beat,
    read_leased_task,
    read_settled,
    read_task,
)
from .request_codec import (
    write_heartbeat_request,
    write_lease_ref,
    write_lease_request,
    write_settlement,
)
from .scalars import short_text
from .shelter import NoShelter, Shelter, TaskShelter
from .transport import AioTransport, BlockingTransport, Transport

DEFAULT_TIMEOUT: Final = timedelta(seconds=10)
_NO_WAIT: Final = timedelta(0)
_LAST_REPLY_WITHIN: Final = timedelta(seconds=2)
"""How long a Lease may still be answered by a server that does not hear that it is to end."""
_WAIT_ENDED_WITHIN: Final = timedelta(seconds=5)
_SHORTEST_BEAT: Final = timedelta(seconds=1)
"""A busy machine answers later than a third of the shortest leases: better late than never."""


@attrs.frozen(kw_only=True)
class GrpcTaskQueue:
    """A `TaskQueue` that asks a server."""

    _enqueues: Enqueues
    _caller: Caller
    _transport: Transport
    _ids: Ids
    _shelter: Shelter
    _timeout: timedelta

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """
        Store tasks; see `TaskQueue.enqueue`.

        Tries again by itself, as each task has an id of its own.

        Raises:
            NotSentError: none is stored.
            StorageUnavailableError: whether they are stored is unknown.
        """
        return await self._enqueues.enqueue(tasks)

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """
        Lease tasks, waiting for a first one; see `TaskQueue.lease`.

        Leases that may have lost more than half of their time on the way are given back.
        """
        message = write_lease_request(request, call_id=self._ids.lease_token())
        return await self._shelter.finish(
            self._lease(message, request),
            hasten=partial(self._end_wait, message),
            if_abandoned=self._give_back,
        )

    async def _end_wait(self, lease: pb.LeaseRequest) -> bool:
        message = pb.EndWaitRequest(worker_id=lease.worker_id, call_id=lease.call_id)
        try:
            await self._caller.call(
                methods.END_WAIT, message, within=_WAIT_ENDED_WITHIN, repeatable=True
            )
        except TaskQueueError:
            return False
        return True

    async def _lease(self, message: pb.LeaseRequest, request: LeaseRequest) -> list[LeasedTask]:
        wait = min(max(request.wait, _NO_WAIT), MAX_WAIT)
        asked_at = self._transport.now()
        reply = await self._caller.call(
            methods.LEASE, message, within=wait + self._timeout, repeatable=False
        )
        leased = [read_leased_task(each) for each in reply.tasks]
        # When within the wait they were leased is unknown; what came after it is lost time.
        on_the_way = timedelta(seconds=self._transport.now() - asked_at) - wait
        if on_the_way > (request.lease_duration or DEFAULT_LEASE) / 2:
            await self._give_back(leased)
            return []
        return leased

    async def _give_back(self, leased: Sequence[LeasedTask]) -> None:
        if leased:
            # If this fails as well, the leases expire.
            with suppress(TaskQueueError):
                await self.settle([Release(ref=each.ref, undelivered=True) for each in leased])

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """
        Extend leases; see `TaskQueue.heartbeat`.

        Takes no longer than a third of the lease, when the next one is due, or a second.
        """
        validation.batch_size("leases", request.leases)
        frame = write_heartbeat_request(attrs.evolve(request, leases=()))
        next_due = (request.lease_duration or DEFAULT_LEASE) / 3
        within = min(self._timeout, max(next_due, _SHORTEST_BEAT))

        async def send(leases: Sequence[pb.LeaseRef]) -> list[Beat | TaskQueueError]:
            message = pb.HeartbeatRequest(leases=leases)
            message.MergeFrom(frame)
            reply = await self._caller.call(
                methods.HEARTBEAT, message, within=within, repeatable=True
            )
            return [read_beat(result) for result in reply.results]

        if not request.leases:
            return await send([])
        return await send_in_parts(request.leases, write_lease_ref, send)

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """End attempts; see `TaskQueue.settle`."""
        validation.batch_size("settlements", settlements)

        async def send(messages: Sequence[pb.Settlement]) -> list[TaskQueueError | None]:
            reply = await self._caller.call(
                methods.SETTLE,
                pb.SettleRequest(settlements=messages),
                within=self._timeout,
                repeatable=True,
            )
            return [read_settled(result) for result in reply.results]

        return await send_in_parts(settlements, write_settlement, send)

    async def get(self, task_id: str) -> TaskView:
        """Return a task; see `TaskQueue.get`."""
        reply = await self._caller.call(
            methods.GET_TASK,
            pb.GetTaskRequest(task_id=short_text(task_id)),
            within=self._timeout,
            repeatable=True,
        )
        return read_task(reply.task)


@attrs.frozen(kw_only=True)
class GrpcClient:
    """A connection to a server, as a queue and as its operator's desk."""

    queue: GrpcTaskQueue
    admin: GrpcTaskAdmin


@asynccontextmanager
async def open_aio_client(
    target: str,
    *,
    timeout: timedelta = DEFAULT_TIMEOUT,  # noqa: ASYNC109  of each call
    credentials: grpc.ChannelCredentials | None = None,
) -> AsyncIterator[GrpcClient]:
    """
    Connect to the server at `target` (`HOST:PORT`) for callers on this event loop.

    It connects when first needed; each call takes at most `timeout`, a Lease its wait more.
    """
    transport = AioTransport(target, credentials)
    shelter = TaskShelter(patience=_LAST_REPLY_WITHIN)
    caller = Caller(transport=transport, jitter=RandomJitter())
    sender = Sender(caller=caller, timeout=timeout)
    merger = AioMerger(sender.send, within=timeout)
    try:
        yield _client(caller, transport, shelter, timeout, sender, merger.submit)
    finally:
        await shelter.empty()
        await transport.close()
        await merger.close()


@contextmanager
def open_blocking_client(
    target: str,
    *,
    timeout: timedelta = DEFAULT_TIMEOUT,
    credentials: grpc.ChannelCredentials | None = None,
) -> Iterator[GrpcClient]:
    """Connect as `open_aio_client` does, for callers whose coroutines shall never suspend."""
    transport = BlockingTransport(target, credentials)
    caller = Caller(transport=transport, jitter=RandomJitter())
    sender = Sender(caller=caller, timeout=timeout)
    merger = ThreadMerger(sender.send, within=timeout, now=transport.now)
    try:
        yield _client(caller, transport, NoShelter(), timeout, sender, merger.submit)
    finally:
        transport.close()


def _client(
    caller: Caller,
    transport: Transport,
    shelter: Shelter,
    timeout: timedelta,
    sender: Sender,
    send_merged: Callable[[NewTask], Awaitable[Outcome]],
) -> GrpcClient:
    ids = RandomIds()
    queue = GrpcTaskQueue(
        enqueues=Enqueues(ids=ids, send=sender.send, send_merged=send_merged),
        caller=caller,
        transport=transport,
        ids=ids,
        shelter=shelter,
        timeout=timeout,
    )
    return GrpcClient(queue=queue, admin=GrpcTaskAdmin(caller=caller, timeout=timeout))
