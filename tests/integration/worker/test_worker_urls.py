"""The same worker, wherever its tasks are kept."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import leaseq
from leaseq.domain.requests import NewTask
from leaseq.domain.task import Status
from leaseq.domain.views import Enqueued
from leaseq.entrypoints.connection import open_async, open_blocking, run_blocking
from worker_processes import SOON, a_site


@pytest.fixture(params=["memory", "sqlite", "grpc"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    match request.param:
        case "memory":
            yield "memory://worker-urls"
        case "sqlite":
            yield f"sqlite:///{tmp_path}/tasks.db"
        case _:
            async with a_site() as site:
                yield site.url


async def test_a_worker_runs_tasks_from_any_url(url: str) -> None:
    worker = leaseq.Worker(url, lease_duration=1)
    late = asyncio.Event()

    @worker.task("double")
    async def double(payload: dict[str, int]) -> int:
        if payload["n"] == 3:
            await asyncio.sleep(2)  # beyond the lease, which beats must keep
            late.set()
        return 2 * payload["n"]

    async with open_async(url) as connection, asyncio.timeout(SOON):
        run = asyncio.create_task(worker.run_async())
        tasks = [NewTask(type="double", payload=f'{{"n": {n}}}') for n in range(1, 4)]
        stored = await connection.queue.enqueue(tasks)
        await late.wait()
        worker.stop()
        await run
        ids = [each.task.id for each in stored if isinstance(each, Enqueued)]
        done = [await connection.queue.get(task_id) for task_id in ids]

    assert [(task.status, task.result, task.attempts) for task in done] == [
        (Status.SUCCEEDED, str(2 * n), 1) for n in range(1, 4)
    ]


def test_a_worker_that_has_the_process_for_itself_ends_when_it_is_told_to(
    tmp_path: Path,
) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    worker = leaseq.Worker(url)

    @worker.task("last")
    def last(_: dict[str, Any]) -> str:
        worker.stop()
        return "done"

    with open_blocking(url) as connection:
        [stored] = run_blocking(connection.queue.enqueue([NewTask(type="last")]))
        assert isinstance(stored, Enqueued)

        worker.run()

        assert run_blocking(connection.queue.get(stored.task.id)).status is Status.SUCCEEDED


def test_a_storage_that_cannot_be_opened_ends_the_run_with_its_error(tmp_path: Path) -> None:
    worker = leaseq.Worker(f"sqlite:///{tmp_path}/no/such/folder/tasks.db")
    worker.task("work")(lambda _: None)

    with pytest.raises(leaseq.StorageError):
        worker.run()
    with pytest.raises(leaseq.StorageError):
        asyncio.run(worker.run_async())
