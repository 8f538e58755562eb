"""Leases of handlers that starve everything else in their process, or are starved."""

from collections.abc import AsyncIterator

import pytest

from leaseq.domain.task import Status
from worker_processes import Site, a_site, a_worker, busy_processes


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


@pytest.mark.timeout(600)
async def test_half_a_minute_in_one_bytecode_costs_no_lease(site: Site) -> None:
    async with a_worker(site.url, lease=5, concurrency=1) as worker:
        task_id = await site.enqueue("divide", max_attempts=1)
        await site.until(task_id, Status.SUCCEEDED, within=500)

        assert worker.said("began") == [task_id]


@pytest.mark.timeout(120)
async def test_three_leases_on_a_blocked_event_loop_cost_none(site: Site) -> None:
    async with a_worker(site.url, lease=3, concurrency=1) as worker:
        task_id = await site.enqueue("nap_on_the_loop", {"seconds": 10}, max_attempts=1)
        await site.until(task_id, Status.SUCCEEDED)

        assert worker.said("began") == [task_id]
        [warning] = [log for log in worker.logs if log["event"] == "event loop blocked"]

    assert warning["task_type"] == "nap_on_the_loop"


@pytest.mark.timeout(180)
async def test_eight_busy_processes_cost_none_of_twenty_handlers_its_lease(site: Site) -> None:
    async with a_worker(site.url, lease=10, concurrency=20) as worker:
        await worker.until(lambda: worker.events["worker started"] == 1)
        with busy_processes(8):
            tasks = [await site.enqueue("nap", {"seconds": 15}, max_attempts=1) for _ in range(20)]
            for task_id in tasks:
                await site.until(task_id, Status.SUCCEEDED, within=120)

        assert sorted(worker.said("began")) == sorted(tasks)
