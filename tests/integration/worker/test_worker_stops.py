"""Workers that are told to stop, as processes."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from leaseq.domain.task import Status
from worker_processes import Site, a_site, a_worker


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_the_worker_finish_what_runs(
    site: Site, number: signal.Signals
) -> None:
    async with a_worker(site.url) as worker:
        task_id = await site.enqueue("nap", {"seconds": 1})
        await worker.until_it_says("began", task_id)

        worker.send(number)

        assert await worker.ended() == 0
        assert worker.said("ended") == [task_id]

    assert (await site.get(task_id)).status is Status.SUCCEEDED


async def test_an_idle_worker_ends_at_once(site: Site) -> None:
    async with a_worker(site.url) as worker:
        await worker.until(lambda: worker.events["worker started"] == 1)
        began = time.monotonic()

        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0
        assert time.monotonic() - began < 3


async def test_what_runs_beyond_the_grace_period_is_given_back(site: Site) -> None:
    async with a_worker(site.url, grace=0.5) as worker:
        task_id = await site.enqueue("nap", {"seconds": 30}, max_attempts=1)
        await worker.until_it_says("began", task_id)
        began = time.monotonic()

        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0
        assert time.monotonic() - began < 3

    task = await site.get(task_id)
    assert (task.status, task.attempts, task.errors) == (Status.QUEUED, 0, ())


async def test_a_second_signal_gives_back_at_once(site: Site) -> None:
    async with a_worker(site.url, grace=60) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60}, max_attempts=1)
        await worker.until_it_says("began", task_id)

        worker.send(signal.SIGTERM)
        await worker.until(lambda: worker.events["worker stopping"] == 1)
        worker.send(signal.SIGTERM)
        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0

    task = await site.get(task_id)
    assert (task.status, task.attempts) == (Status.QUEUED, 0)


async def test_a_thread_that_runs_on_ends_with_the_process_before_anybody_else_begins(
    site: Site, tmp_path: Path
) -> None:
    payload = {"note": str(tmp_path / "pid"), "seconds": 30, "patience": 0.05}
    async with a_worker(site.url, grace=0.5) as first:
        task_id = await site.enqueue("nap_in_first_process", payload, max_attempts=1)
        await first.until_it_says("began", task_id)
        async with a_worker(site.url) as second:
            await second.until(lambda: second.events["worker started"] == 1)
            began = time.monotonic()

            first.send(signal.SIGTERM)

            assert await first.ended() == 0
            assert time.monotonic() - began < 4
            done = await site.until(task_id, Status.SUCCEEDED)

    assert done.result == '"gone"'
    assert done.attempts == 1


async def test_a_blocked_loop_does_not_keep_the_process(site: Site) -> None:
    async with a_worker(site.url, grace=0.2) as worker:
        task_id = await site.enqueue("nap_on_the_loop", {"seconds": 60}, max_attempts=1)
        await worker.until_it_says("began", task_id)
        began = time.monotonic()

        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0
        assert time.monotonic() - began < 9

    task = await site.until(task_id, Status.QUEUED)
    assert task.attempts == 0


async def test_a_thread_that_a_handler_started_does_not_keep_the_process(site: Site) -> None:
    async with a_worker(site.url, grace=0) as worker:
        task_id = await site.enqueue("nap_by_to_thread", {"seconds": 60}, max_attempts=1)
        await worker.until_it_says("began", task_id)

        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0

    assert (await site.get(task_id)).attempts == 0


async def test_a_worker_that_cannot_tell_the_server_says_so_by_its_exit_code() -> None:
    async with a_site() as site, a_worker(site.url, grace=0.2, lease=30) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60})
        await worker.until_it_says("began", task_id)

        async def refuse() -> None:
            raise OSError("dropped")

        site.tapped.next("settle", *[refuse] * 1000)
        worker.send(signal.SIGTERM)

        assert await worker.ended() == 1


async def test_a_redeploy_costs_no_attempts(site: Site) -> None:
    task_id = await site.enqueue("nap", {"seconds": 1}, max_attempts=2)

    for _ in range(5):
        async with a_worker(site.url, grace=0) as worker:
            await worker.until_it_says("began", task_id)
            worker.send(signal.SIGTERM)
            assert await worker.ended() == 0
    async with a_worker(site.url):
        done = await site.until(task_id, Status.SUCCEEDED)

    assert done.attempts == 1


async def test_signals_at_random_moments_lose_no_task(site: Site) -> None:
    ids = [await site.enqueue("nap", {"seconds": 0.01}, max_attempts=1) for _ in range(400)]

    for pause in (0.0, 0.05, 0.1, 0.15):
        async with a_worker(site.url, grace=5) as worker:
            await worker.until(lambda worker=worker: bool(worker.said("began")))  # type: ignore[misc]
            await asyncio.sleep(pause)
            worker.send(signal.SIGTERM)
            assert await worker.ended() == 0
        statuses = [(await site.get(task_id)).status for task_id in ids]
        assert set(statuses) <= {Status.QUEUED, Status.SUCCEEDED}

    assert Status.SUCCEEDED in statuses
