"""A program that knows nothing of leaseq but the wire."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2
from grpc_status import rpc_status

from leaseq.adapters.grpc.generated import queue_pb2
from leaseq.adapters.grpc.generated.queue_pb2_grpc import TaskQueueStub
from leaseq.domain.ports import Storage
from memory_server import MemoryServer, memory_server

LONG = Duration(seconds=20)


@asynccontextmanager
async def wire(
    storage: Storage | None = None, *, reflection: bool = False
) -> AsyncIterator[tuple[MemoryServer, grpc.aio.Channel]]:
    async with (
        memory_server(storage, reflection=reflection) as server,
        grpc.aio.insecure_channel(server.target) as channel,
    ):
        yield server, channel


async def enqueue(channel: grpc.aio.Channel, *, payload: str = "") -> str:
    request = queue_pb2.EnqueueRequest(type="t", payload=payload)
    reply: queue_pb2.EnqueueResponse = await TaskQueueStub(channel).Enqueue(request)
    return reply.task.id


def lease_call(
    channel: grpc.aio.Channel, *, wait: Duration | None = None, deadline: float = 30
) -> grpc.aio.UnaryUnaryCall[queue_pb2.LeaseRequest, queue_pb2.LeaseResponse]:
    request = queue_pb2.LeaseRequest(worker_id="w", wait=wait, lease_duration=Duration(seconds=1))
    return TaskQueueStub(channel).Lease(request, timeout=deadline)


def raw_call(channel: grpc.aio.Channel, path: str, request: bytes) -> Awaitable[bytes]:
    method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(path)
    return method(request)


async def refusal(call: Awaitable[object]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value


def rich_status(error: Any) -> Status:
    status: Status | None = rpc_status.from_call(error)
    assert status is not None
    return status


async def health(channel: grpc.aio.Channel, service: str) -> str:
    request = health_pb2.HealthCheckRequest(service=service).SerializeToString()
    reply = await raw_call(channel, "/grpc.health.v1.Health/Check", request)
    status = health_pb2.HealthCheckResponse.FromString(reply).status
    return health_pb2.HealthCheckResponse.ServingStatus.Name(status)


async def until_in_flight(server: MemoryServer, number: int) -> None:
    """Return once so many calls are being answered."""
    async with asyncio.timeout(10):
        while server.grpc.in_flight != number:  # noqa: ASYNC110  gRPC tells nobody
            await asyncio.sleep(0.005)
