"""Heartbeats that nothing in the worker's process can starve, and that stop with it."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from subprocess import run

import pytest

import leaseq
from leaseq.domain.task import Status
from worker_processes import SOON, Site, WorkerProcess, a_site, a_worker, busy_processes
from worker_program import gone


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


def heart_of(worker: WorkerProcess) -> int:
    found = run(
        ["pgrep", "-P", str(worker.pid), "-f", "worker.beating"],
        check=True,
        capture_output=True,
        text=True,
    )
    return int(found.stdout)


async def test_a_handler_that_keeps_pythons_lock_for_many_leases_keeps_its_lease(
    site: Site,
) -> None:
    async with a_worker(site.url, lease=1.5, concurrency=1) as worker:
        task_id = await site.enqueue("keep_lock", {"seconds": 6}, max_attempts=1)
        await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id]


async def test_a_storage_of_the_worker_itself_is_beaten_for_from_outside_too(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path / 'tasks.db'}"
    async with leaseq.connect_async(url) as client, a_worker(url, lease=2, concurrency=1) as worker:
        stored = await client.enqueue("keep_lock", {"seconds": 6}, queue="q", max_attempts=1)
        async with asyncio.timeout(SOON):
            while (await client.get(stored.task.id)).finished_at is None:  # noqa: ASYNC110
                await asyncio.sleep(0.1)

        assert (await client.get(stored.task.id)).status is Status.SUCCEEDED
        assert worker.said("began") == [stored.task.id]


async def test_another_heart_takes_over_from_one_that_dies(site: Site) -> None:
    async with a_worker(site.url, lease=8.0) as worker:
        task_id = await site.enqueue("nap", {"seconds": 10}, max_attempts=1)
        await worker.until_it_says("began", task_id)
        first = heart_of(worker)
        os.kill(first, signal.SIGKILL)
        await worker.until(
            lambda: worker.events["heartbeat process failed; another is started"] == 1
        )
        await site.until(task_id, Status.SUCCEEDED)

        assert heart_of(worker) != first
        assert worker.said("began") == [task_id]


async def test_a_heart_ends_with_a_worker_that_is_killed(site: Site) -> None:
    async with a_worker(site.url) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60})
        await worker.until_it_says("began", task_id)
        heart = heart_of(worker)

        worker.send(signal.SIGKILL)
        await worker.ended()

        async with asyncio.timeout(SOON):
            while not gone(heart):  # noqa: ASYNC110  the system tells nobody
                await asyncio.sleep(0.02)
        await site.until(task_id, Status.QUEUED)


async def test_a_busy_computer_costs_no_lease(site: Site) -> None:
    async with a_worker(site.url, lease=4, concurrency=5) as worker:
        await worker.until(lambda: worker.events["worker started"] == 1)
        with busy_processes(8):
            tasks = [await site.enqueue("nap", {"seconds": 6}, max_attempts=1) for _ in range(5)]
            for task_id in tasks:
                await site.until(task_id, Status.SUCCEEDED)

        assert sorted(worker.said("began")) == sorted(tasks)
