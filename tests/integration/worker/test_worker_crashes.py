"""Workers that die, freeze or cannot reach their server."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.task import Status
from worker_processes import Site, a_site, a_worker


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


async def test_another_worker_finishes_what_a_killed_one_began(site: Site) -> None:
    async with a_worker(site.url) as first:
        task_id = await site.enqueue("nap", {"seconds": 2})
        await first.until_it_says("began", task_id)
        first.send(signal.SIGKILL)
        await first.ended()

        async with a_worker(site.url) as second:
            done = await site.until(task_id, Status.SUCCEEDED)

            assert done.result == str(second.pid)
            assert second.said("began") == [task_id]

    assert done.attempts == 2
    assert done.errors[0].type == "LeaseExpired"


async def test_a_task_that_kills_its_workers_is_given_up(site: Site) -> None:
    poison = await site.enqueue("die", max_attempts=3)
    deaths = 0

    while (await site.get(poison)).status is not Status.DEAD:
        async with a_worker(site.url) as worker:
            await worker.until(lambda worker=worker: poison in worker.said("began"))  # type: ignore[misc]
            assert await worker.ended() == -signal.SIGKILL
        deaths += 1
        await site.until(poison, Status.QUEUED, Status.DEAD)

    assert deaths == 3
    async with a_worker(site.url):
        await site.until(await site.enqueue("nap"), Status.SUCCEEDED)


async def test_a_worker_that_was_frozen_learns_that_it_lost_its_task(site: Site) -> None:
    async with a_worker(site.url) as frozen, a_worker(site.url) as other:
        await other.until(lambda: other.events["worker started"] == 1)
        other.send(signal.SIGSTOP)
        task_id = await site.enqueue("nap", {"seconds": 1.5})
        await frozen.until_it_says("began", task_id)
        frozen.send(signal.SIGSTOP)
        other.send(signal.SIGCONT)
        done = await site.until(task_id, Status.SUCCEEDED)

        frozen.send(signal.SIGCONT)
        # Dropped if the handler was told in time, refused by the server if it was not.
        await frozen.until(
            lambda: frozen.events["outcome dropped"] + frozen.events["outcome not reported"] == 1
        )
        other.send(signal.SIGSTOP)
        await site.until(await site.enqueue("nap"), Status.SUCCEEDED)

        assert await site.get(task_id) == done
        assert done.result == str(other.pid)


async def test_a_handler_that_blocks_the_loop_keeps_its_lease_and_is_named(site: Site) -> None:
    async with a_worker(site.url, lease=1.0) as worker:
        task_id = await site.enqueue("nap_on_the_loop", {"seconds": 3}, max_attempts=1)
        done = await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id]
        [warning] = [log for log in worker.logs if log["event"] == "event loop blocked"]

    assert done.attempts == 1
    assert warning["task_type"] == "nap_on_the_loop"
    assert warning["task_id"] == task_id
    assert "worker_program.py" in warning["where"]


async def test_two_lease_times_of_failing_beats_cancel_the_handler(site: Site) -> None:
    async def refuse() -> None:
        raise StorageUnavailableError("away")

    async with a_worker(site.url, lease=1.0, concurrency=1) as worker:
        task_id = await site.enqueue("nap", {"seconds": 10})
        await worker.until_it_says("began", task_id)
        site.tapped.next("heartbeat", *[refuse] * 1000)
        await worker.until_it_says("cancelled", task_id)
        await worker.until(
            lambda: any(event.startswith("no heartbeat landed") for event in worker.events)
        )
        polls = site.tapped.calls["lease"]
        await asyncio.sleep(1)
        assert site.tapped.calls["lease"] == polls

        site.tapped.let_through("heartbeat")
        await worker.until(lambda: worker.events["heartbeats land again"] == 1)
        await worker.until(lambda: worker.said("began").count(task_id) == 2)


async def test_a_beat_that_is_swallowed_does_not_cost_the_lease(site: Site) -> None:
    async def swallow() -> None:
        await asyncio.Event().wait()

    site.tapped.next("heartbeat", swallow)
    async with a_worker(site.url, lease=1.5) as worker:
        task_id = await site.enqueue("nap", {"seconds": 4}, max_attempts=1)
        await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id]
        assert site.tapped.calls["heartbeat"] > 3


async def test_a_report_that_fails_three_times_is_one_start(site: Site) -> None:
    site.tapped.break_next("settle", OSError("1"), OSError("2"), StorageUnavailableError("3"))

    async with a_worker(site.url) as worker:
        task_id = await site.enqueue("nap", max_attempts=1)
        done = await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id]

    assert done.attempts == 1


async def test_a_report_that_nobody_takes_for_two_lease_times_frees_the_slot(site: Site) -> None:
    async def refuse() -> None:
        raise OSError("dropped")

    site.tapped.next("settle", *[refuse] * 1000)
    async with a_worker(site.url, lease=1.0, concurrency=1) as worker:
        task_id = await site.enqueue("nap")
        await worker.until(lambda: worker.events["outcome not reported"] == 1)
        site.tapped.let_through("settle")
        done = await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id] * done.attempts
        assert done.attempts >= 2


async def test_a_worker_outlives_its_server() -> None:
    storage = MemoryStorage()
    async with a_site(storage) as site:
        port = int(site.url.rpartition(":")[2])
        async with a_worker(site.url) as worker:
            await site.until(await site.enqueue("nap"), Status.SUCCEEDED)
            await site.grpc.drain(timedelta(0))
            await asyncio.sleep(3)
            async with a_site(storage, port=port) as again:
                began = time.monotonic()
                await again.until(await again.enqueue("nap"), Status.SUCCEEDED)
                assert time.monotonic() - began < 15
            assert worker.events["worker stopped"] == 0
