"""What happens to handlers whose lease is lost or whose task is called off."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.requests import Complete
from leaseq.domain.task import Status
from leaseq.entrypoints.worker import StopReason, TaskContext, Worker
from worker_rig import Rig, running, soon

LEASE = 1.0
PERIOD = LEASE / 3
AT_ONCE: dict[str, Any] = {
    "retry_base": timedelta(milliseconds=1),
    "retry_cap": timedelta(milliseconds=1),
}


@pytest.fixture
async def rig() -> Rig:
    return Rig()


class Waiting:
    """An `async def` handler that waits until it is cancelled, once; then it returns at once."""

    def __init__(self, worker: Worker) -> None:
        self.started = asyncio.Event()
        self.stopped = asyncio.Event()
        self.reasons: list[StopReason | None] = []
        worker.task("wait")(self.wait)

    async def wait(self, _: dict[str, Any], ctx: TaskContext) -> str:
        if self.reasons:
            return "second"
        self.started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.reasons.append(ctx.cancel_reason)
            self.stopped.set()
            raise
        return "never"


async def lose_lease(rig: Rig) -> None:
    """Let the lease expire at the queue alone: the worker's own time stands still."""
    rig.clock.advance(timedelta(seconds=LEASE))
    await rig.maintenance.reap()


async def test_a_handler_whose_lease_is_lost_is_cancelled_and_reports_nothing(rig: Rig) -> None:
    worker = rig.worker(lease=LEASE)
    handler = Waiting(worker)
    task_id = await rig.enqueue("wait", max_attempts=1)

    async with running(worker):
        await soon(handler.started.wait())
        await lose_lease(rig)
        rig.stopwatch.advance(PERIOD)
        await soon(handler.stopped.wait())

    assert handler.reasons == [StopReason.LEASE_LOST]
    assert rig.queue.settlements == []
    assert (await rig.get(task_id)).status is Status.DEAD


async def test_a_def_handler_sees_that_its_lease_is_lost(rig: Rig) -> None:
    worker = rig.worker(lease=LEASE)
    started = asyncio.Event()
    loop = asyncio.get_running_loop()
    reasons: list[StopReason | None] = []

    @worker.task("work")
    def work(_: dict[str, Any], ctx: TaskContext) -> str:
        loop.call_soon_threadsafe(started.set)
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        reasons.append(ctx.cancel_reason)
        ctx.raise_if_cancelled()
        return "never"

    await rig.enqueue("work", max_attempts=1)

    async with running(worker):
        await soon(started.wait())
        await lose_lease(rig)
        rig.stopwatch.advance(PERIOD)

    assert reasons == [StopReason.LEASE_LOST]
    assert rig.queue.settlements == []


async def test_a_lease_time_of_failing_beats_stops_handlers_and_leasing_until_one_lands(
    rig: Rig,
) -> None:
    worker = rig.worker(concurrency=1, lease=LEASE)
    handler = Waiting(worker)
    await rig.enqueue("wait")
    rig.queue.break_next("heartbeat", *[StorageUnavailableError("away")] * 2)

    async with running(worker):
        await soon(handler.started.wait())
        rig.stopwatch.advance(1.01 * LEASE)
        await soon(handler.stopped.wait())
        await rig.queue.until(lambda: rig.queue.calls["heartbeat"] == 1)
        rig.stopwatch.advance(PERIOD)
        await rig.queue.until(lambda: rig.queue.calls["heartbeat"] == 2)
        assert rig.queue.calls["lease"] == 1
        rig.stopwatch.advance(PERIOD)
        await rig.queue.until(lambda: rig.queue.calls["heartbeat"] == 3)
        await rig.queue.until(lambda: rig.queue.calls["lease"] == 2)

    assert rig.queue.beats[-1].leases == ()
    assert handler.reasons == [StopReason.LEASE_LOST]


async def test_a_task_that_is_called_off_ends_as_cancelled(rig: Rig) -> None:
    worker = rig.worker(lease=LEASE)
    handler = Waiting(worker)
    task_id = await rig.enqueue("wait")

    async with running(worker):
        await soon(handler.started.wait())
        await rig.admin.cancel([task_id])
        rig.advance(PERIOD)
        cancelled = await rig.until(task_id, Status.CANCELLED)

    assert handler.reasons == [StopReason.CANCEL_REQUESTED]
    assert cancelled.attempts == 0


async def test_a_handler_may_finish_although_it_was_called_off(rig: Rig) -> None:
    worker = rig.worker(lease=LEASE)
    started = asyncio.Event()

    @worker.task("stubborn")
    async def stubborn(_: dict[str, Any]) -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"
        return "never"

    task_id = await rig.enqueue("stubborn")

    async with running(worker):
        await soon(started.wait())
        await rig.admin.cancel([task_id])
        rig.advance(PERIOD)
        await rig.until(task_id, Status.SUCCEEDED)


async def test_a_report_that_fails_three_times_is_one_start_and_a_success(rig: Rig) -> None:
    worker = rig.worker()
    starts: list[int] = []
    worker.task("work")(lambda _: starts.append(1))
    task_id = await rig.enqueue("work")
    rig.queue.break_next("settle", *[StorageUnavailableError("away")] * 3)

    async with running(worker):
        done = await rig.until(task_id, Status.SUCCEEDED)

    assert starts == [1]
    assert done.attempts == 1


async def test_a_report_that_nobody_takes_frees_its_slot_when_the_lease_runs_out(
    rig: Rig,
) -> None:
    worker = rig.worker(concurrency=1, lease=LEASE)
    worker.task("work")(lambda _: "done")
    task_id = await rig.enqueue("work", **AT_ONCE)
    may_fail = asyncio.Event()

    async def hang() -> None:
        await may_fail.wait()
        raise StorageUnavailableError("away")

    rig.queue.next("settle", hang)

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        rig.advance(PERIOD)
        await rig.queue.until(lambda: rig.queue.calls["heartbeat"] == 1)
        rig.advance(LEASE)
        await rig.queue.until(lambda: rig.queue.calls["lease"] == 2)
        may_fail.set()
        await rig.maintenance.reap()
        rig.advance(0.01)
        done = await rig.until(task_id, Status.SUCCEEDED)

    assert done.attempts == 2


async def test_a_settle_that_was_taken_is_not_called_lost_by_a_beat_that_came_later(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    worker = rig.worker(lease=LEASE)
    worker.task("work")(lambda _: "done")
    task_id = await rig.enqueue("work")
    taken = asyncio.Event()
    reply = asyncio.Event()

    async def take_and_hold_the_reply() -> None:
        await rig.batching.settle([Complete(ref=rig.queue.settlements[0][0].ref, result='"done"')])
        taken.set()
        await reply.wait()

    rig.queue.next("settle", take_and_hold_the_reply)

    async with running(worker):
        await soon(taken.wait())
        rig.advance(PERIOD)
        await rig.queue.until(lambda: rig.queue.calls["heartbeat"] == 1)
        reply.set()
        await rig.until(task_id, Status.SUCCEEDED)

    assert "outcome not reported" not in caplog.messages


async def test_a_reply_that_may_have_waited_long_is_not_started(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    worker = rig.worker(lease=30)
    starts: list[int] = []
    worker.task("work")(lambda _: starts.append(1))
    task_id = await rig.enqueue("work")

    async def freeze(_: Any) -> None:
        rig.queue.after_lease = None
        rig.stopwatch.advance_apart(steady=0.1, wall=16)

    rig.queue.after_lease = freeze

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        await rig.until(task_id, Status.SUCCEEDED)

    assert "lease arrived late" in caplog.messages
    assert starts == [1]


async def test_a_task_leased_anew_by_the_same_worker_is_another_lease(rig: Rig) -> None:
    worker = rig.worker(lease=LEASE)
    handler = Waiting(worker)
    task_id = await rig.enqueue("wait", **AT_ONCE)

    async with running(worker):
        await soon(handler.started.wait())
        await lose_lease(rig)
        rig.stopwatch.advance(PERIOD)
        await soon(handler.stopped.wait())
        rig.clock.advance(timedelta(seconds=1))
        done = await rig.until(task_id, Status.SUCCEEDED)

    assert done.result == '"second"'
    assert done.attempts == 2
