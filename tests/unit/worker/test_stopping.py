"""How a worker ends."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.requests import Release
from leaseq.domain.task import Status
from leaseq.domain.views import LeasedTask
from leaseq.entrypoints.worker import PermanentFailure, StopReason, TaskContext, Worker
from worker_rig import SOON, Rig, soon


@pytest.fixture
async def rig() -> Rig:
    return Rig()


class Gate:
    """A handler that runs until a test lets it go."""

    def __init__(self, worker: Worker, type_: str = "work") -> None:
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.reasons: list[StopReason | None] = []
        worker.task(type_)(self.handle)

    async def handle(self, _: dict[str, Any], ctx: TaskContext) -> str:
        self.started.set()
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.reasons.append(ctx.cancel_reason)
            raise
        return "done"


async def started(worker: Worker, gate: Gate) -> asyncio.Task[None]:
    run = asyncio.create_task(worker.run_async())
    await soon(gate.started.wait())
    return run


async def test_a_stopping_worker_finishes_what_runs(rig: Rig) -> None:
    worker = rig.worker()
    gate = Gate(worker)
    task_id = await rig.enqueue("work")
    run = await started(worker, gate)

    worker.stop()
    gate.may_end.set()
    await soon(run)

    assert (await rig.get(task_id)).status is Status.SUCCEEDED


async def test_a_stopping_worker_leases_nothing_more(rig: Rig) -> None:
    worker = rig.worker()
    gate = Gate(worker)
    await rig.enqueue("work")
    run = await started(worker, gate)
    await rig.wake_up.until_waiting()

    worker.stop()
    await soon(rig.until_nobody_waits())
    late = await rig.enqueue("work")
    gate.may_end.set()
    await soon(run)

    assert (await rig.get(late)).status is Status.QUEUED
    assert (await rig.get(late)).lease_owner is None


async def test_an_idle_worker_stops_at_once(rig: Rig) -> None:
    worker = rig.worker()
    worker.task("work")(lambda _: None)
    run = asyncio.create_task(worker.run_async())
    await soon(rig.wake_up.until_waiting())

    worker.stop()

    await soon(run)


async def test_what_runs_at_the_end_of_the_grace_period_is_given_back_uncounted(
    rig: Rig,
) -> None:
    worker = rig.worker(grace=0)
    gate = Gate(worker)
    task_id = await rig.enqueue("work", max_attempts=1)
    run = await started(worker, gate)

    worker.stop()
    await soon(run)

    task = await rig.get(task_id)
    assert gate.reasons == [StopReason.SHUTDOWN]
    assert (task.status, task.attempts, task.errors) == (Status.QUEUED, 0, ())


async def test_a_second_word_gives_back_at_once(rig: Rig) -> None:
    worker = rig.worker(grace=3600)
    gate = Gate(worker)
    task_id = await rig.enqueue("work")
    run = await started(worker, gate)

    worker.stop()
    worker.stop(now=True)
    await soon(run)

    assert gate.reasons == [StopReason.SHUTDOWN]
    assert (await rig.get(task_id)).status is Status.QUEUED


async def test_a_handler_that_ends_while_it_is_told_to_is_completed(rig: Rig) -> None:
    worker = rig.worker(grace=0)
    begun = asyncio.Event()

    @worker.task("work")
    async def work(_: dict[str, Any]) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "checkpoint"
        return "never"

    task_id = await rig.enqueue("work")
    run = asyncio.create_task(worker.run_async())
    await soon(begun.wait())

    worker.stop()
    await soon(run)

    assert (await rig.get(task_id)).result == '"checkpoint"'


@pytest.mark.parametrize(
    ("error", "status"),
    [(OSError("broken pipe"), Status.QUEUED), (PermanentFailure("no"), Status.FAILED)],
    ids=["an accident", "a verdict"],
)
async def test_a_shutdown_fails_no_task_by_accident(
    rig: Rig, error: Exception, status: Status
) -> None:
    worker = rig.worker(grace=0)
    begun = asyncio.Event()

    @worker.task("work")
    async def work(_: dict[str, Any]) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            raise error

    task_id = await rig.enqueue("work")
    run = asyncio.create_task(worker.run_async())
    await soon(begun.wait())

    worker.stop()
    await soon(run)

    assert (await rig.get(task_id)).status is status


async def test_a_reply_that_arrives_after_the_stop_is_given_back(rig: Rig) -> None:
    worker = rig.worker()
    starts: list[int] = []
    worker.task("work")(lambda _: starts.append(1))
    task_id = await rig.enqueue("work")

    async def stop(_: Sequence[LeasedTask]) -> None:
        worker.stop()

    rig.queue.after_lease = stop
    await soon(worker.run_async())

    task = await rig.get(task_id)
    assert starts == []
    assert [type(s) for batch in rig.queue.settlements for s in batch] == [Release]
    assert (task.status, task.attempts, task.lease_owner) == (Status.QUEUED, 0, None)


async def test_a_thread_that_runs_on_keeps_its_lease_until_it_ends(rig: Rig) -> None:
    worker = rig.worker(grace=0)
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()
    told = asyncio.Event()
    may_end = threading.Event()

    @worker.task("work")
    def work(_: dict[str, Any], ctx: TaskContext) -> str:
        loop.call_soon_threadsafe(begun.set)
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        loop.call_soon_threadsafe(told.set)
        may_end.wait(SOON)
        return "done after all"

    task_id = await rig.enqueue("work")
    run = asyncio.create_task(worker.run_async())
    await soon(begun.wait())

    worker.stop(now=True)
    await soon(told.wait())
    held = await rig.get(task_id)
    may_end.set()
    await soon(run)

    assert held.status is Status.LEASED
    assert (await rig.get(task_id)).result == '"done after all"'


async def test_cancelling_a_run_gives_everything_back(rig: Rig) -> None:
    worker = rig.worker()
    gate = Gate(worker)
    task_id = await rig.enqueue("work")
    run = await started(worker, gate)

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(run)

    assert gate.reasons == [StopReason.SHUTDOWN]
    assert (await rig.get(task_id)).status is Status.QUEUED


async def test_cancelling_a_run_leaves_a_thread_that_does_not_end_behind(rig: Rig) -> None:
    worker = rig.worker()
    loop = asyncio.get_running_loop()
    begun = asyncio.Event()
    may_end = threading.Event()

    @worker.task("work")
    def work(_: dict[str, Any]) -> None:
        loop.call_soon_threadsafe(begun.set)
        may_end.wait(SOON)

    task_id = await rig.enqueue("work")
    run = asyncio.create_task(worker.run_async())
    await soon(begun.wait())

    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(run)

    assert (await rig.get(task_id)).status is Status.LEASED
    may_end.set()


async def test_a_stop_waits_for_reports_only_so_long(rig: Rig) -> None:
    worker = rig.worker(grace=0, lease=1)
    begun = asyncio.Event()

    @worker.task("work")
    async def work(_: dict[str, Any]) -> None:
        begun.set()
        rig.queue.break_next("settle", *[StorageUnavailableError("away")] * 100_000)

    await rig.enqueue("work")
    run = asyncio.create_task(worker.run_async())
    await soon(begun.wait())
    await rig.queue.until(lambda: rig.queue.calls["settle"] > 1)

    worker.stop()
    rig.advance(5)
    await soon(run)


async def test_a_stop_from_another_thread_is_heard(rig: Rig) -> None:
    worker = rig.worker()
    worker.task("work")(lambda _: None)
    run = asyncio.create_task(worker.run_async())
    await soon(rig.wake_up.until_waiting())

    threading.Thread(target=worker.stop).start()

    await soon(run)


async def test_a_worker_that_does_not_run_can_be_told_to_stop(rig: Rig) -> None:
    rig.worker().stop()


async def test_a_stop_at_any_moment_of_leasing_loses_no_task(rig: Rig) -> None:
    for yields in range(1, 60):
        queue = f"queue-{yields}"
        ids = [await rig.enqueue("work", queue=queue, max_attempts=1) for _ in range(5)]
        worker = rig.worker(concurrency=3, grace=0, queues=[queue])
        worker.task("work")(_instant)
        run = asyncio.create_task(worker.run_async())
        for _ in range(yields):
            await asyncio.sleep(0)

        worker.stop()
        await soon(run)

        statuses = {(await rig.get(task_id)).status for task_id in ids}
        assert statuses <= {Status.QUEUED, Status.SUCCEEDED}


async def _instant(_: dict[str, Any]) -> None: ...


async def test_a_run_ends_when_one_of_its_own_parts_breaks(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = rig.worker()
    worker.task("work")(lambda _: None)

    def no_draw() -> float:
        raise AssertionError("no luck")

    monkeypatch.setattr(rig.jitter, "draw", no_draw)
    rig.queue.break_next("lease", StorageUnavailableError("away"))

    with pytest.raises(AssertionError, match="no luck"):
        await soon(worker.run_async())
