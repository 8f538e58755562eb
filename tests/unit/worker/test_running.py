import asyncio
import json
import threading
from typing import Any

import pytest

from leaseq.domain.requests import Release
from leaseq.domain.task import Status
from leaseq.entrypoints.worker import PermanentFailure, Retry, TaskContext
from worker_rig import Rig, nothing, running, soon


@pytest.fixture
async def rig() -> Rig:
    return Rig()


async def test_an_async_handler_completes_a_task_with_what_it_returns(rig: Rig) -> None:
    worker = rig.worker()

    @worker.task("add")
    async def add(payload: dict[str, int]) -> dict[str, int]:
        return {"sum": payload["a"] + payload["b"]}

    task_id = await rig.enqueue("add", '{"a": 1, "b": 2}')

    async with running(worker):
        done = await rig.until(task_id, Status.SUCCEEDED)

    assert json.loads(done.result or "") == {"sum": 3}


async def test_a_def_handler_runs_in_a_thread_of_its_own(rig: Rig) -> None:
    worker = rig.worker()
    threads: list[str] = []

    @worker.task("note")
    def note(_: dict[str, Any]) -> None:
        threads.append(threading.current_thread().name)

    task_id = await rig.enqueue("note")

    async with running(worker):
        done = await rig.until(task_id, Status.SUCCEEDED)

    assert done.result is None
    assert threads == ["leaseq-handler-1"]


async def test_a_context_tells_the_handler_about_the_attempt(rig: Rig) -> None:
    worker = rig.worker(queues=["mail"])
    seen: list[TaskContext] = []

    @worker.task("send")
    async def send(_: dict[str, Any], ctx: TaskContext) -> None:
        seen.append(ctx)

    task_id = await rig.enqueue("send", queue="mail", idempotency_key="k", max_attempts=4)

    async with running(worker):
        await rig.until(task_id, Status.SUCCEEDED)

    [ctx] = seen
    assert (ctx.task_id, ctx.queue, ctx.type) == (task_id, "mail", "send")
    assert (ctx.attempt, ctx.max_attempts, ctx.lease_number) == (1, 4, 1)
    assert ctx.idempotency_key == "k"
    assert not ctx.cancelled


async def test_only_tasks_of_types_with_a_handler_are_asked_for(rig: Rig) -> None:
    worker = rig.worker(queues=["a", "b"], concurrency=7)
    worker.task("one")(lambda _: None)
    worker.task("two")(lambda _: None)

    async with running(worker):
        await rig.queue.until(lambda: bool(rig.queue.leases))

    [request] = rig.queue.leases
    assert request.types == ("one", "two")
    assert request.queues == ("a", "b")
    assert request.max_tasks == 7


async def test_a_worker_asks_for_no_more_than_its_free_slots(rig: Rig) -> None:
    worker = rig.worker(concurrency=3)
    started = asyncio.Semaphore(0)
    may_end = asyncio.Event()

    @worker.task("hold")
    async def hold(_: dict[str, Any]) -> None:
        started.release()
        await may_end.wait()

    ids = [await rig.enqueue("hold") for _ in range(5)]

    async with running(worker):
        for _ in range(3):
            await soon(started.acquire())
        assert [request.max_tasks for request in rig.queue.leases] == [3]
        may_end.set()
        for task_id in ids:
            await rig.until(task_id, Status.SUCCEEDED)

    assert all(request.max_tasks <= 3 for request in rig.queue.leases)


async def test_an_exception_is_a_retryable_failure_with_its_traceback(rig: Rig) -> None:
    worker = rig.worker()

    @worker.task("break")
    def break_(_: dict[str, Any]) -> None:
        raise ValueError("boom")

    task_id = await rig.enqueue("break")

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        failed = await rig.until(task_id, Status.QUEUED)

    [error] = failed.errors
    assert failed.attempts == 1
    assert (error.type, error.message) == ("ValueError", "boom")
    assert "break_" in error.traceback
    assert "attempt.py" not in error.traceback


async def test_a_permanent_failure_gives_the_task_up(rig: Rig) -> None:
    worker = rig.worker()

    @worker.task("break")
    async def break_(_: dict[str, Any]) -> None:
        raise PermanentFailure("no such address")

    task_id = await rig.enqueue("break")

    async with running(worker):
        failed = await rig.until(task_id, Status.FAILED)

    assert failed.last_error == "PermanentFailure: no such address"


async def test_a_retry_waits_as_long_as_the_handler_says(rig: Rig) -> None:
    worker = rig.worker()

    @worker.task("poll")
    async def poll(_: dict[str, Any]) -> None:
        raise Retry("not yet", after=90)

    task_id = await rig.enqueue("poll")

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        waiting = await rig.until(task_id, Status.QUEUED)

    assert (waiting.run_after - rig.clock.now()).total_seconds() == 90
    assert waiting.last_error == "Retry: not yet"


@pytest.mark.parametrize(
    "result",
    [float("nan"), {"a": object()}, "\x00", "\ud800", [1e400]],
    ids=["nan", "no JSON", "NUL", "surrogate", "infinity"],
)
async def test_a_result_that_cannot_be_kept_fails_the_attempt_for_good(
    rig: Rig, result: object
) -> None:
    worker = rig.worker()
    worker.task("odd")(lambda _: result)
    task_id = await rig.enqueue("odd")

    async with running(worker):
        failed = await rig.until(task_id, Status.FAILED)

    assert (failed.last_error or "").startswith("UnusableResult: the result cannot be kept as JSON")


class Odd(BaseException):
    pass


@pytest.mark.parametrize("is_async", [True, False], ids=["async def", "def"])
@pytest.mark.parametrize(
    "error",
    [
        SystemExit(3),
        KeyboardInterrupt(),
        Odd(),
        asyncio.CancelledError(),
        StopIteration(),
        GeneratorExit(),
    ],
)
async def test_whatever_a_handler_raises_fails_the_attempt_and_not_the_worker(
    rig: Rig, error: BaseException, *, is_async: bool
) -> None:
    worker = rig.worker()

    async def break_async(_: dict[str, Any]) -> None:
        raise error

    def break_(_: dict[str, Any]) -> None:
        raise error

    worker.task("break")(break_async if is_async else break_)
    worker.task("work")(lambda _: "done")
    broken = await rig.enqueue("break")

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        await rig.until(broken, Status.QUEUED)
        await rig.until(await rig.enqueue("work"), Status.SUCCEEDED)

    assert (await rig.get(broken)).attempts == 1


async def test_a_type_that_was_delivered_wrongly_is_released(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    worker = rig.worker()
    worker.task("known")(lambda _: None)
    task_id = await rig.enqueue("unknown", max_attempts=1)

    async def mend() -> None:
        rig.queue.ignores_types = False

    rig.queue.ignores_types = True
    rig.queue.next("lease", nothing, mend)

    async with running(worker):
        await rig.queue.until(lambda: rig.queue.calls["settle"] == 1)
        task = await rig.until(task_id, Status.QUEUED)

    assert isinstance(rig.queue.settlements[0][0], Release)
    assert task.attempts == 0
    assert rig.pauses
    assert "no handler for this type" in caplog.messages


async def test_a_worker_without_handlers_does_not_start(rig: Rig) -> None:
    with pytest.raises(RuntimeError, match="no handlers"):
        await rig.worker().run_async()


async def test_a_worker_does_not_run_twice_at_once(rig: Rig) -> None:
    worker = rig.worker()
    worker.task("work")(lambda _: None)

    async with running(worker):
        await rig.queue.until(lambda: bool(rig.queue.leases))
        with pytest.raises(RuntimeError, match="runs already"):
            await worker.run_async()


async def test_each_run_has_a_worker_id_of_its_own(rig: Rig) -> None:
    worker = rig.worker()
    worker.task("work")(lambda _: None)

    for run in range(2):
        async with running(worker):
            await rig.queue.until(lambda run=run: len(rig.queue.leases) > run)  # type: ignore[misc]

    assert len({request.worker_id for request in rig.queue.leases}) == 2
