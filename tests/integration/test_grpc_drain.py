"""How a server stops: nobody is cut off who can finish, and nothing is lost of the rest."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from datetime import timedelta

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from grpc_health.v1 import health_pb2

from leaseq.adapters.grpc.generated import queue_pb2
from leaseq.adapters.grpc.generated.queue_pb2_grpc import TaskQueueStub
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.requests import PageRequest, TaskFilter
from leaseq.domain.task import Status
from memory_server import memory_server
from raw_wire import (
    LONG,
    enqueue,
    health,
    lease_call,
    refusal,
    rich_status,
    until_in_flight,
    wire,
)
from slow_storage import SlowStorage

GRACE = timedelta(seconds=5)
AT_ONCE = timedelta(0)


async def test_leases_that_wait_are_answered_empty_at_once() -> None:
    async with wire() as (server, channel):
        waiting = [asyncio.ensure_future(lease_call(channel, wait=LONG)) for _ in range(20)]
        await until_in_flight(server, 20)

        began = time.monotonic()
        await server.grpc.drain(GRACE)
        took = time.monotonic() - began

        replies = await asyncio.gather(*waiting)
        assert [list(reply.tasks) for reply in replies] == [[]] * 20
        assert took < 1


async def test_a_call_in_flight_may_finish_and_a_new_one_hears_that_nothing_was_done() -> None:
    storage = SlowStorage()
    async with wire(storage) as (server, channel):
        task_id = await enqueue(channel)
        in_flight = asyncio.ensure_future(lease_call(channel))
        await storage.slow_tasks.claimed.wait()
        draining = asyncio.create_task(server.grpc.drain(GRACE))
        while await health(channel, "") == "SERVING":
            pass

        refused = await refusal(lease_call(channel, wait=LONG))
        storage.slow_tasks.answer.set()
        reply = await in_flight
        await draining

        info, retry = ErrorInfo(), RetryInfo()
        assert [leased.task.id for leased in reply.tasks] == [task_id]
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert rich_status(refused).details[0].Unpack(info)
        assert rich_status(refused).details[1].Unpack(retry)
        assert info.reason == "DRAINING"


async def test_a_call_that_outlasts_the_grace_is_cut_off_and_its_leases_are_taken_back() -> None:
    storage = SlowStorage()
    async with wire(storage) as (server, channel):
        task_id = await enqueue(channel)
        cut_off = asyncio.ensure_future(lease_call(channel))
        await storage.slow_tasks.claimed.wait()

        await server.grpc.drain(AT_ONCE)
        storage.slow_tasks.answer.set()
        await server.queue.close()

        task = await server.queue.get(task_id)
        assert (await refusal(cut_off)).code() in {
            grpc.StatusCode.CANCELLED,
            grpc.StatusCode.UNAVAILABLE,
        }
        assert server.grpc.in_flight == 0
        assert (task.status, task.attempts) == (Status.QUEUED, 0)


async def test_who_watches_health_is_told_and_does_not_hold_the_server_up() -> None:
    request = health_pb2.HealthCheckRequest().SerializeToString()
    async with wire() as (server, channel):
        watch: grpc.aio.UnaryStreamMultiCallable[bytes, bytes]
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        watching = watch(request)
        told = [health_pb2.HealthCheckResponse.FromString(await _next(watching)).status]

        began = time.monotonic()
        draining = asyncio.create_task(server.grpc.drain(GRACE))
        told.append(health_pb2.HealthCheckResponse.FromString(await _next(watching)).status)
        await draining
        took = time.monotonic() - began

        serving, not_serving = told
        assert serving == health_pb2.HealthCheckResponse.SERVING
        assert not_serving == health_pb2.HealthCheckResponse.NOT_SERVING
        assert took < 1


async def test_a_hundred_mixed_calls_end_well_or_refused_and_none_is_forgotten(
    caplog: pytest.LogCaptureFixture,
) -> None:
    storage = MemoryStorage()
    async with wire(storage) as (server, channel):
        held = (await _lease_some(channel, 25)).tasks
        calls = [
            asyncio.ensure_future(_ending(call))
            for leased in held
            for call in (
                enqueue(channel),
                lease_call(channel, wait=LONG),
                TaskQueueStub(channel).Complete(
                    queue_pb2.CompleteRequest(
                        task_id=leased.task.id, lease_token=leased.lease_token
                    )
                ),
                TaskQueueStub(channel).GetTask(queue_pb2.GetTaskRequest(task_id="nonsense")),
            )
        ]
        await asyncio.sleep(0.005)

        await server.grpc.drain(GRACE)
        endings = await asyncio.gather(*calls)

        page = await server.admin.list_tasks(TaskFilter(), PageRequest(size=1000))
        acknowledged = [ending for ending in endings[0::4] if ending is None]
        completed = [ending for ending in endings[2::4] if ending is None]
        statuses = [task.status for task in page.tasks]
        assert len(calls) == 100
        assert set(endings) <= {
            None,
            grpc.StatusCode.UNAVAILABLE,
            grpc.StatusCode.INVALID_ARGUMENT,
        }
        assert len(statuses) == 25 + len(acknowledged)
        assert statuses.count(Status.SUCCEEDED) == len(completed)
        assert server.grpc.in_flight == 0
        assert [log for log in caplog.records if log.levelno >= logging.WARNING] == []


async def test_a_server_that_has_stopped_or_never_started_may_be_drained() -> None:
    async with memory_server() as server:
        await server.grpc.drain(GRACE)

        await server.grpc.drain(GRACE)
        await GrpcServer(queue=server.queue, admin=server.admin, undo=server.queue).drain(GRACE)


async def _next(watching: grpc.aio.UnaryStreamCall[bytes, bytes]) -> bytes:
    raw = await watching.read()
    assert isinstance(raw, bytes)
    return raw


async def _lease_some(channel: grpc.aio.Channel, number: int) -> queue_pb2.LeaseResponse:
    for _ in range(number):
        await enqueue(channel)
    request = queue_pb2.LeaseRequest(worker_id="w", max_tasks=number)
    reply: queue_pb2.LeaseResponse = await TaskQueueStub(channel).Lease(request)
    return reply


async def _ending(call: Awaitable[object]) -> grpc.StatusCode | None:
    """Return how a call was refused; None: it was not."""
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return None
