from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import pytest

from leaseq.domain.errors import InvalidArgumentError, StorageUnavailableError, TaskNotFoundError
from leaseq.domain.requests import LeaseRequest, NewTask
from leaseq.domain.task import Status
from leaseq.domain.views import Enqueued, LeasedTask
from leaseq.entrypoints.connection import Connection, open_async, open_blocking, run_blocking

URL = "memory://connection-tests"
LONG = timedelta(seconds=30)
SOON = 10.0


def enqueue(connection: Connection) -> str:
    [enqueued] = run_blocking(connection.queue.enqueue([NewTask(type="t")]))
    assert isinstance(enqueued, Enqueued)
    return enqueued.task.id


async def test_one_queue_is_seen_by_those_who_await_and_those_who_block() -> None:
    async with open_async(URL) as awaiting:
        with open_blocking(URL) as blocking:
            task_id = await asyncio.to_thread(enqueue, blocking)

            assert (await awaiting.queue.get(task_id)).status is Status.QUEUED
            assert [queue.name for queue in await awaiting.admin.list_queues()] == ["default"]


def test_tasks_in_memory_go_with_the_last_who_holds_them() -> None:
    with open_blocking(URL) as connection:
        task_id = enqueue(connection)

    with open_blocking(URL) as connection, pytest.raises(TaskNotFoundError):
        run_blocking(connection.queue.get(task_id))


async def test_a_cancelled_lease_takes_no_task() -> None:
    async with open_async(URL) as connection:
        waiting = asyncio.create_task(
            connection.queue.lease(LeaseRequest(worker_id="w", wait=LONG))
        )
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        [enqueued] = await connection.queue.enqueue([NewTask(type="t")])
        assert isinstance(enqueued, Enqueued)
        task = await connection.queue.get(enqueued.task.id)

    assert task.status is Status.QUEUED


async def test_leases_cancelled_at_any_moment_are_given_back() -> None:
    async with open_async(URL) as connection:
        await connection.queue.enqueue([NewTask(type="t") for _ in range(50)])
        got = 0
        for turns in range(50):
            leasing = asyncio.create_task(connection.queue.lease(LeaseRequest(worker_id="w")))
            for _ in range(turns % 7):
                await asyncio.sleep(0)
            leasing.cancel()
            await asyncio.wait([leasing])
            got += 0 if leasing.cancelled() else len(leasing.result())

        while got < 50:
            request = LeaseRequest(worker_id="w", max_tasks=50, wait=LONG)
            leased = await connection.queue.lease(request)
            assert leased
            got += len(leased)

    assert got == 50


async def test_a_waiting_lease_is_told_when_its_storage_is_closed() -> None:
    async with open_async(URL) as connection:
        waiting = asyncio.create_task(
            connection.queue.lease(LeaseRequest(worker_id="w", wait=LONG))
        )
        await asyncio.sleep(0)

    with pytest.raises(StorageUnavailableError, match="closed"):
        await waiting


def test_a_blocked_lease_is_woken_by_another_thread() -> None:
    leased: list[LeasedTask] = []

    def lease() -> None:
        with open_blocking(URL) as connection:
            ready.set()
            request = LeaseRequest(worker_id="w", wait=LONG)
            leased.extend(run_blocking(connection.queue.lease(request)))

    ready = threading.Event()
    with open_blocking(URL) as connection:
        thread = threading.Thread(target=lease)
        thread.start()
        ready.wait(SOON)
        task_id = enqueue(connection)
        thread.join(SOON)

    assert [task.task.id for task in leased] == [task_id]


async def test_what_is_no_url_opens_nothing() -> None:
    with pytest.raises(InvalidArgumentError, match="url:"), open_blocking("nowhere"):
        pass
    with pytest.raises(InvalidArgumentError, match="url:"):
        async with open_async("nowhere"):
            pass


def test_a_coroutine_that_suspends_is_no_blocking_one() -> None:
    with pytest.raises(RuntimeError, match="suspended"):
        run_blocking(asyncio.sleep(0))
