"""Both clients where the server or the connection is not what it should be."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar

import pytest

from in_threads import in_thread
from leaseq.adapters.grpc.client import GrpcClient, open_aio_client, open_blocking_client
from leaseq.domain.errors import InvalidArgumentError, StorageUnavailableError
from leaseq.domain.requests import Complete, LeaseRequest, NewTask
from leaseq.domain.task import Status
from leaseq.domain.views import Enqueued
from memory_server import memory_server
from raw_wire import until_in_flight
from slow_storage import SlowStorage

T = TypeVar("T")
NOT_LONG = timedelta(seconds=0.3)
LONG = timedelta(seconds=20)
A_TASK = NewTask(type="t")

Run = Callable[[Coroutine[Any, Any, T]], Coroutine[Any, Any, T]]
Opens = Callable[..., AbstractAsyncContextManager[GrpcClient]]


async def awaited(call: Coroutine[Any, Any, T]) -> T:
    return await call


@asynccontextmanager
async def blocking(target: str, *, timeout: timedelta = LONG) -> AsyncIterator[GrpcClient]:  # noqa: ASYNC109  of each call
    with open_blocking_client(target, timeout=timeout) as client:
        yield client


both = pytest.mark.parametrize(
    ("opens", "run"),
    [(open_aio_client, awaited), (blocking, in_thread)],
    ids=["aio", "blocking"],
)


@both
async def test_a_server_that_is_not_there_is_an_error_that_names_it(
    opens: Opens, run: Run[Any]
) -> None:
    target = f"127.0.0.1:{free_port()}"
    async with opens(target, timeout=NOT_LONG) as client:
        with pytest.raises(StorageUnavailableError, match=f"{target}.* refused"):
            await run(client.queue.enqueue([A_TASK]))


@both
async def test_a_caller_with_much_time_learns_soon_that_nobody_listens(
    opens: Opens, run: Run[Any]
) -> None:
    async with opens(f"127.0.0.1:{free_port()}", timeout=timedelta(minutes=5)) as client:
        with pytest.raises(StorageUnavailableError, match=r"cannot be reached: .* refused"):
            await run(client.queue.enqueue([A_TASK]))


@both
async def test_a_caller_learns_soon_that_its_server_is_gone(opens: Opens, run: Run[Any]) -> None:
    async with memory_server() as server, opens(server.target, timeout=LONG) as client:
        await run(client.queue.enqueue([A_TASK]))
        await server.grpc.drain(NOT_LONG)

        with pytest.raises(StorageUnavailableError, match=r"cannot be reached: .* refused"):
            await run(client.queue.enqueue([A_TASK]))


@both
async def test_a_call_waits_for_a_server_that_is_about_to_start(
    opens: Opens, run: Run[Any]
) -> None:
    port = free_port()
    async with opens(f"127.0.0.1:{port}", timeout=LONG) as client:
        call = asyncio.create_task(run(client.queue.enqueue([A_TASK])))
        await asyncio.sleep(0.1)

        async with memory_server(port=port):
            [answer] = await call

    assert isinstance(answer, Enqueued)


@both
async def test_a_server_may_be_replaced_while_its_clients_go_on(
    opens: Opens, run: Run[Any]
) -> None:
    port = free_port()
    async with opens(f"127.0.0.1:{port}", timeout=LONG) as client:
        async with memory_server(port=port):
            first = await run(client.queue.enqueue([A_TASK]))

        call = asyncio.create_task(run(client.queue.enqueue([A_TASK])))
        async with memory_server(port=port):
            second = await call

    assert [type(answer) for answer in (*first, *second)] == [Enqueued, Enqueued]


@both
async def test_a_closed_client_cuts_off_its_calls_and_refuses_others(
    opens: Opens, run: Run[Any]
) -> None:
    request = LeaseRequest(worker_id="w", wait=LONG)
    async with memory_server() as server:
        async with opens(server.target, timeout=LONG) as client:
            waiting = asyncio.create_task(run(client.queue.lease(request)))
            await until_in_flight(server, 1)

        with pytest.raises(StorageUnavailableError, match=f"{server.target}.*"):
            await waiting
        with pytest.raises(StorageUnavailableError, match="is closed"):
            await run(client.queue.enqueue([A_TASK]))


@both
async def test_a_batch_larger_than_any_request_is_stored(opens: Opens, run: Run[Any]) -> None:
    large = NewTask(type="t", payload='{"x": "' + "y" * 20_000 + '"}')
    monster = NewTask(type="t", payload='{"x": "' + "y" * 5_000_000 + '"}')
    async with memory_server() as server, opens(server.target, timeout=LONG) as client:
        answers = await run(client.queue.enqueue([*[large] * 999, monster]))

        assert [type(answer) for answer in answers] == [Enqueued] * 999 + [InvalidArgumentError]


@both
async def test_a_result_that_is_too_large_is_refused_alone(opens: Opens, run: Run[Any]) -> None:
    async with memory_server() as server, opens(server.target, timeout=LONG) as client:
        await run(client.queue.enqueue([A_TASK, A_TASK]))
        request = LeaseRequest(worker_id="w", max_tasks=2)
        one, two = await run(client.queue.lease(request))

        refused, done = await run(
            client.queue.settle(
                [
                    Complete(ref=one.ref, result='"' + "y" * 5_000_000 + '"'),
                    Complete(ref=two.ref, result='"y"'),
                ]
            )
        )

        assert isinstance(refused, InvalidArgumentError)
        assert done is None


async def test_tasks_that_arrive_after_their_caller_was_cancelled_are_given_back() -> None:
    storage = SlowStorage()
    async with memory_server(storage) as server:
        async with open_aio_client(server.target) as client:
            [enqueued] = await client.queue.enqueue([A_TASK])
            call = asyncio.create_task(client.queue.lease(LeaseRequest(worker_id="w")))
            await storage.slow_tasks.claimed.wait()

            call.cancel()
            await asyncio.wait([call])
            storage.slow_tasks.answer.set()

        assert isinstance(enqueued, Enqueued)
        task = await server.queue.get(enqueued.task.id)
        assert (task.status, task.attempts) == (Status.QUEUED, 0)


async def test_a_caller_that_leaves_ends_its_own_wait_and_no_other() -> None:
    async with memory_server() as server, open_aio_client(server.target) as client:
        request = LeaseRequest(worker_id="w", wait=LONG)
        leaving = asyncio.create_task(client.queue.lease(request))
        staying = asyncio.create_task(client.queue.lease(request))
        await until_in_flight(server, 2)

        leaving.cancel()
        await asyncio.wait([leaving])
        await until_in_flight(server, 1)

        await client.queue.enqueue([A_TASK])
        assert len(await staying) == 1


async def test_a_cancelled_lease_soon_stops_waiting_at_the_server() -> None:
    async with memory_server() as server, open_aio_client(server.target) as client:
        request = LeaseRequest(worker_id="w", wait=LONG)
        call = asyncio.create_task(client.queue.lease(request))
        await until_in_flight(server, 1)

        call.cancel()
        await asyncio.wait([call])

        async with asyncio.timeout(2):
            await until_in_flight(server, 0)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
