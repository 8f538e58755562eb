"""A blocking client as an event loop can use it: each call in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import attrs

from leaseq.domain.errors import TaskQueueError
from leaseq.domain.ports import TaskAdmin, TaskQueue
from leaseq.domain.requests import (
    HeartbeatRequest,
    LeaseRequest,
    NewTask,
    PageRequest,
    Settlement,
    TaskFilter,
)
from leaseq.domain.views import Beat, Enqueued, LeasedTask, QueueView, TaskPage, TaskView

T = TypeVar("T")


async def in_thread(call: Coroutine[Any, Any, T]) -> T:
    """Run a call that blocks, and must never suspend."""
    return await asyncio.to_thread(_to_its_end, call)


def _to_its_end(call: Coroutine[Any, Any, T]) -> T:
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise AssertionError("a blocking call was suspended")


@attrs.frozen
class QueueInThreads:
    _queue: TaskQueue

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        return await in_thread(self._queue.enqueue(tasks))

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        return await in_thread(self._queue.lease(request))

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        return await in_thread(self._queue.heartbeat(request))

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        return await in_thread(self._queue.settle(settlements))

    async def get(self, task_id: str) -> TaskView:
        return await in_thread(self._queue.get(task_id))


@attrs.frozen
class AdminInThreads:
    _admin: TaskAdmin

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        return await in_thread(self._admin.list_tasks(wanted, page))

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        return await in_thread(self._admin.requeue(task_ids))

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        return await in_thread(self._admin.cancel(task_ids))

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        return await in_thread(self._admin.delete(task_ids))

    async def list_queues(self) -> list[QueueView]:
        return await in_thread(self._admin.list_queues())

    async def pause_queue(self, queue: str) -> None:
        await in_thread(self._admin.pause_queue(queue))

    async def resume_queue(self, queue: str) -> None:
        await in_thread(self._admin.resume_queue(queue))
