"""The suite for a `TaskQueue`, through a server on the loopback and both kinds of client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import attrs
import pytest
import pytest_asyncio

from leaseq.adapters.grpc.client import GrpcClient, open_aio_client, open_blocking_client
from leaseq.adapters.grpc.server import GrpcServer
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
from leaseq.testing import Services, TaskQueueConformance

T = TypeVar("T")


@pytest_asyncio.fixture
async def target(services: Services) -> AsyncIterator[str]:
    server = GrpcServer(queue=services.queue, admin=services.admin, undo=services.queue)
    port = await server.start("127.0.0.1:0")
    yield f"127.0.0.1:{port}"
    await server.drain(timedelta(seconds=1))


class TestAioClient(TaskQueueConformance):
    @pytest_asyncio.fixture
    async def client(self, target: str) -> AsyncIterator[GrpcClient]:
        async with open_aio_client(target) as client:
            yield client

    @pytest.fixture
    def queue(self, client: GrpcClient) -> TaskQueue:
        return client.queue

    @pytest.fixture
    def admin(self, client: GrpcClient) -> TaskAdmin:
        return client.admin


class TestBlockingClient(TaskQueueConformance):
    @pytest_asyncio.fixture
    async def client(self, target: str) -> AsyncIterator[GrpcClient]:
        with open_blocking_client(target) as client:
            yield client

    @pytest.fixture
    def queue(self, client: GrpcClient) -> TaskQueue:
        return QueueInThreads(client.queue)

    @pytest.fixture
    def admin(self, client: GrpcClient) -> TaskAdmin:
        return AdminInThreads(client.admin)

    @pytest.mark.skip(reason="nobody can cancel a call that blocks its thread")
    async def test_one_that_goes_away_takes_no_task_with_it(self) -> None:  # type: ignore[override]
        pass


async def in_thread(call: Coroutine[Any, Any, T]) -> T:
    """Run a call that blocks, and must never suspend, beside the server's event loop."""
    return await asyncio.to_thread(to_its_end, call)


def to_its_end(call: Coroutine[Any, Any, T]) -> T:
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
