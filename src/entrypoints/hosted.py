"""
The driving ports on a `Host`, for callers on any thread.

The same classes serve callers that await and callers that block; what differs is how
they wait for a `concurrent.futures.Future`. With `Blocking` the coroutines never suspend.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

import attrs

from ..domain.errors import StorageUnavailableError, TaskQueueError
from ..domain.limits import MAX_WAIT
from ..domain.requests import (
    HeartbeatRequest,
    LeaseRequest,
    NewTask,
    PageRequest,
    Settlement,
    TaskFilter,
)
from ..domain.views import Beat, Enqueued, LeasedTask, QueueView, TaskPage, TaskView
from .container import Services
from .host import Host, Undeliverable

T = TypeVar("T")

_NO_LONGER: Final = timedelta(0)


class Wait(Protocol):
    """How to wait for the result of a call that another thread carries out."""

    async def __call__(self, handed: Future[T], /, *, longer: timedelta) -> T:
        """
        Return the result, or raise what was raised.

        Args:
            longer: what the call may take beyond what calls usually may.
        """
        ...


@attrs.frozen(kw_only=True)
class Awaiting:
    """Waits on the running event loop, until a deadline."""

    deadline: timedelta

    async def __call__(self, handed: Future[T], /, *, longer: timedelta) -> T:
        """
        Return the result; see `Wait`.

        Raises:
            StorageUnavailableError: there is none in time.
        """
        seconds = (self.deadline + longer).total_seconds()
        try:
            async with asyncio.timeout(seconds) as limit:
                return await asyncio.wrap_future(handed)
        except TimeoutError:
            if not limit.expired():
                raise
            raise _no_answer(seconds) from None


@attrs.frozen(kw_only=True)
class Blocking:
    """Blocks the thread that calls, until a deadline."""

    deadline: timedelta

    async def __call__(self, handed: Future[T], /, *, longer: timedelta) -> T:
        """
        Return the result; see `Wait`.

        Raises:
            StorageUnavailableError: none came in time.
        """
        seconds = (self.deadline + longer).total_seconds()
        if handed not in concurrent.futures.wait([handed], seconds).done:
            raise _no_answer(seconds)
        return handed.result()


def _no_answer(seconds: float) -> StorageUnavailableError:
    return StorageUnavailableError(
        f"the storage did not answer within {seconds:g} s, so what it did is unknown"
    )


@attrs.frozen
class _Caller:
    host: Host
    wait: Wait

    async def call(
        self,
        work: Callable[[Services], Coroutine[Any, Any, T]],
        *,
        longer: timedelta = _NO_LONGER,
        undeliverable: Undeliverable[T] | None = None,
    ) -> T:
        opened = self.host.here()
        services = opened.result() if opened.done() else await self.wait(opened, longer=_NO_LONGER)
        handed = self.host.submit(work(services), undeliverable)
        try:
            return await self.wait(handed, longer=longer)
        except BaseException:
            self.host.abandon(handed, undeliverable)
            raise


class HostedTaskQueue:
    """A `TaskQueue` whose calls are carried out on a host's thread."""

    def __init__(self, host: Host, wait: Wait) -> None:
        self._host = host
        self._call = _Caller(host, wait).call

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store tasks; see `TaskQueue.enqueue`."""
        return await self._call(lambda services: services.queue.enqueue(tasks))

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Lease tasks; see `TaskQueue.lease`. A caller that goes away leaves no lease."""
        return await self._call(
            lambda services: services.queue.lease(request),
            longer=min(max(request.wait, _NO_LONGER), MAX_WAIT),
            undeliverable=self._undo,
        )

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Extend leases; see `TaskQueue.heartbeat`."""
        return await self._call(lambda services: services.queue.heartbeat(request))

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """End attempts; see `TaskQueue.settle`."""
        return await self._call(lambda services: services.queue.settle(settlements))

    async def get(self, task_id: str) -> TaskView:
        """Return a task; see `TaskQueue.get`."""
        return await self._call(lambda services: services.queue.get(task_id))

    async def _undo(self, leased: list[LeasedTask]) -> None:
        await self._host.here().result().queue.undo_leases([each.ref for each in leased])


class HostedTaskAdmin:
    """A `TaskAdmin` whose calls are carried out on a host's thread."""

    def __init__(self, host: Host, wait: Wait) -> None:
        self._call = _Caller(host, wait).call

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        """Return one page of tasks; see `TaskAdmin.list_tasks`."""
        return await self._call(lambda services: services.admin.list_tasks(wanted, page))

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Start tasks anew; see `TaskAdmin.requeue`."""
        return await self._call(lambda services: services.admin.requeue(task_ids))

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Call tasks off; see `TaskAdmin.cancel`."""
        return await self._call(lambda services: services.admin.cancel(task_ids))

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Remove tasks that have ended; see `TaskAdmin.delete`."""
        return await self._call(lambda services: services.admin.delete(task_ids))

    async def list_queues(self) -> list[QueueView]:
        """Return every queue; see `TaskAdmin.list_queues`."""
        return await self._call(lambda services: services.admin.list_queues())

    async def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; see `TaskAdmin.pause_queue`."""
        await self._call(lambda services: services.admin.pause_queue(queue))

    async def resume_queue(self, queue: str) -> None:
        """Lease from a queue again; see `TaskAdmin.resume_queue`."""
        await self._call(lambda services: services.admin.resume_queue(queue))
