"""The suite for a `TaskQueue` through a server on the loopback, by both kinds of client."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from in_threads import AdminInThreads, QueueInThreads
from leaseq.adapters.grpc.client import GrpcClient, open_aio_client, open_blocking_client
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.domain.ports import TaskAdmin, TaskQueue
from leaseq.testing import Services, TaskQueueConformance


class _Door:
    @pytest_asyncio.fixture
    async def target(self, services: Services) -> AsyncIterator[str]:
        server = GrpcServer(queue=services.queue, admin=services.admin, undo=services.queue)
        port = await server.start("127.0.0.1:0")
        yield f"127.0.0.1:{port}"
        await server.drain(timedelta(seconds=1))


class AioClientConformance(_Door, TaskQueueConformance):
    """By the client for callers on an event loop."""

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


class BlockingClientConformance(_Door, TaskQueueConformance):
    """By the client for callers without one."""

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
