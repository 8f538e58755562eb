"""What happens to handlers that take longer than they may."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

from leaseq.domain.requests import Fail, Release
from leaseq.domain.task import Status
from leaseq.domain.views import leased_view
from leaseq.entrypoints.worker import PermanentFailure, Retry, StopReason, TaskContext
from leaseq.entrypoints.worker.held import Held
from leaseq.testing import NOON, a_lease, a_task
from worker_rig import Rig, running, soon

TIMEOUT = 60.0
MESSAGE = "the handler took longer than its timeout of 60 s"


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_an_async_handler_is_cancelled_at_its_timeout_and_has_failed(rig: Rig) -> None:
    worker = rig.worker(lease=300)
    started = asyncio.Event()
    reasons: list[StopReason | None] = []

    @worker.task("wait", timeout=TIMEOUT)
    async def wait_for_ever(_: dict[str, Any], ctx: TaskContext) -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            reasons.append(ctx.cancel_reason)

    task_id = await rig.enqueue("wait", max_attempts=1)

    async with running(worker):
        await soon(started.wait())
        rig.stopwatch.advance(TIMEOUT)
        task = await rig.until(task_id, Status.DEAD)

    assert reasons == [StopReason.TIMEOUT]
    assert (task.errors[0].type, task.errors[0].message) == ("HandlerTimeout", MESSAGE)
    assert "await asyncio.Event().wait()" in task.errors[0].traceback


async def test_a_handler_is_left_alone_until_its_timeout(rig: Rig) -> None:
    worker = rig.worker(lease=300)
    started, may_end = asyncio.Event(), asyncio.Event()

    @worker.task("wait", timeout=timedelta(seconds=TIMEOUT))
    async def wait(_: dict[str, Any]) -> None:
        started.set()
        await may_end.wait()

    task_id = await rig.enqueue("wait", max_attempts=1)

    async with running(worker):
        await soon(started.wait())
        rig.stopwatch.advance(TIMEOUT - 0.001)
        may_end.set()
        await rig.until(task_id, Status.SUCCEEDED)


async def test_an_async_handler_that_ends_well_after_its_timeout_has_failed(rig: Rig) -> None:
    worker = rig.worker(lease=300)

    @worker.task("block", timeout=TIMEOUT)
    async def block(_: dict[str, Any]) -> str:
        rig.stopwatch.advance(TIMEOUT)
        return "late"

    task_id = await rig.enqueue("block", max_attempts=1)

    async with running(worker):
        task = await rig.until(task_id, Status.DEAD)

    assert task.errors[0].type == "HandlerTimeout"


async def test_a_thread_keeps_its_slot_beyond_its_timeout_and_has_then_failed(rig: Rig) -> None:
    worker = rig.worker(concurrency=1, lease=300)
    loop = asyncio.get_running_loop()
    told, may_end = asyncio.Event(), threading.Event()

    @worker.task("work", timeout=TIMEOUT)
    def work(_: dict[str, Any], ctx: TaskContext) -> str:
        rig.stopwatch.advance(TIMEOUT)
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        loop.call_soon_threadsafe(told.set)
        may_end.wait()
        return "late"

    task_id = await rig.enqueue("work", max_attempts=1)

    async with running(worker):
        await soon(told.wait())
        assert (await rig.get(task_id)).status is Status.LEASED
        may_end.set()
        task = await rig.until(task_id, Status.DEAD)

    assert task.errors[0].message == MESSAGE


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (PermanentFailure("no use"), Status.FAILED),
        (Retry("later", after=5), Status.QUEUED),
    ],
    ids=["PermanentFailure", "Retry"],
)
async def test_what_a_handler_says_on_purpose_counts_beyond_its_timeout(
    rig: Rig, said: Exception, status: Status
) -> None:
    worker = rig.worker(lease=300)

    @worker.task("work", timeout=TIMEOUT)
    async def work(_: dict[str, Any]) -> None:
        rig.stopwatch.advance(TIMEOUT)
        raise said

    task_id = await rig.enqueue("work")

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        task = await rig.until(task_id, status)

    assert task.errors[0].type == type(said).__name__


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ((StopReason.TIMEOUT, StopReason.SHUTDOWN), StopReason.TIMEOUT),
        ((StopReason.TIMEOUT, StopReason.CANCEL_REQUESTED), StopReason.TIMEOUT),
        ((StopReason.SHUTDOWN, StopReason.TIMEOUT), StopReason.TIMEOUT),
        ((StopReason.TIMEOUT, StopReason.LEASE_LOST), StopReason.LEASE_LOST),
        ((StopReason.LEASE_LOST, StopReason.TIMEOUT), StopReason.LEASE_LOST),
        ((StopReason.CANCEL_REQUESTED, StopReason.SHUTDOWN), StopReason.SHUTDOWN),
    ],
)
def test_a_timeout_is_forgotten_over_nothing_but_a_lost_lease(
    told: tuple[StopReason, ...], kept: StopReason
) -> None:
    context = a_held().context

    for reason in told:
        context.tell(reason)

    assert context.cancel_reason is kept


def test_the_last_word_on_a_handler_that_would_not_end_gives_its_task_back() -> None:
    held = a_held()
    held.tell(StopReason.SHUTDOWN)

    assert held.last_word == Release(ref=held.ref)


def test_the_last_word_on_a_handler_beyond_its_timeout_fails_its_task() -> None:
    held = a_held()
    held.tell(StopReason.TIMEOUT)

    word = held.last_word

    assert isinstance(word, Fail)
    assert word.error.message == MESSAGE


def test_who_tells_a_handler_passes_on_what_it_was_told_before() -> None:
    held = a_held()
    heard: list[StopReason] = []

    held.tell(StopReason.TIMEOUT)
    held.told_by(heard.append)
    held.tell(StopReason.SHUTDOWN)
    held.tell(StopReason.LEASE_LOST)

    assert heard == [StopReason.TIMEOUT, StopReason.LEASE_LOST]


def a_held() -> Held:
    return Held.of(leased_view(a_task(), a_lease(), now=NOON), timeout=TIMEOUT)
