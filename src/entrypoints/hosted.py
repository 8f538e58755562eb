"""
The driving ports on a `Host`, for callers on any thread.

The same classes serve callers that await and callers that block; what differs is how
they wait for a `concurrent.futures.Future`. With `blocking` the coroutines never suspend.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar

import attrs

from ..domain.errors import TaskQueueError
from ..domain.requests import (
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    PageRequest,
    Settlement,
    TaskFilter,
)
from ..domain.views import Beat, Enqueued, LeasedTask, QueueView, TaskPage, TaskView
from .host import Host, Undeliverable

T = TypeVar("T")


class Wait(Protocol):
    """How to wait for the result of a call that another thread carries out."""

    async def __call__(self, handed: Future[T], /) -> T:
        """Return the result, or raise what was raised."""
        ...


async def awaiting(handed: Future[T], /) -> T:
    """Wait on the running event loop."""
    return await asyncio.wrap_future(handed)


async def blocking(handed: Future[T], /) -> T:
    """Block this thread."""
    return handed.result()


@attrs.frozen(kw_only=True)
class _Caller:
    host: Host
    wait: Wait

    async def call(
        self, work: Coroutine[Any, Any, T], undeliverable: Undeliverable[T] | None = None
    ) -> T:
        handed = self.host.submit(work, undeliverable)
        try:
            return await self.wait(handed)
        except BaseException:
            self.host.abandon(handed, undeliverable)
            raise


class HostedTaskQueue:
    """A `TaskQueue` whose calls are carried out on a host's thread."""

    def __init__(self, host: Host, wait: Wait) -> None:
        self._queue = host.opened.result().queue
        self._call = _Caller(host=host, wait=wait).call

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store tasks; see `TaskQueue.enqueue`."""
        return await self._call(self._queue.enqueue(tasks))

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Lease tasks; see `TaskQueue.lease`. A caller that goes away leaves no lease."""
        return await self._call(self._queue.lease(request), self._undo)

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Extend leases; see `TaskQueue.heartbeat`."""
        return await self._call(self._queue.heartbeat(request))

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """End attempts; see `TaskQueue.settle`."""
        return await self._call(self._queue.settle(settlements))

    async def get(self, task_id: str) -> TaskView:
        """Return a task; see `TaskQueue.get`."""
        return await self._call(self._queue.get(task_id))

    async def _undo(self, leased: list[LeasedTask]) -> None:
        refs = [LeaseRef(task_id=task.task.id, lease_token=task.lease_token) for task in leased]
        await self._queue.undo_leases(refs)


class HostedTaskAdmin:
    """A `TaskAdmin` whose calls are carried out on a host's thread."""

    def __init__(self, host: Host, wait: Wait) -> None:
        self._admin = host.opened.result().admin
        self._call = _Caller(host=host, wait=wait).call

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        """Return one page of tasks; see `TaskAdmin.list_tasks`."""
        return await self._call(self._admin.list_tasks(wanted, page))

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Start tasks anew; see `TaskAdmin.requeue`."""
        return await self._call(self._admin.requeue(task_ids))

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Call tasks off; see `TaskAdmin.cancel`."""
        return await self._call(self._admin.cancel(task_ids))

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Remove tasks that have ended; see `TaskAdmin.delete`."""
        return await self._call(self._admin.delete(task_ids))

    async def list_queues(self) -> list[QueueView]:
        """Return every queue; see `TaskAdmin.list_queues`."""
        return await self._call(self._admin.list_queues())

    async def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; see `TaskAdmin.pause_queue`."""
        await self._call(self._admin.pause_queue(queue))

    async def resume_queue(self, queue: str) -> None:
        """Lease from a queue again; see `TaskAdmin.resume_queue`."""
        await self._call(self._admin.resume_queue(queue))
