"""Ending attempts: completed, failed, released, or lost with its worker."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from ...domain.ids import JsonText, WorkerId
from ...domain.ports import TaskQueue
from ...domain.requests import Complete, Fail, NewTask
from ...domain.task import AttemptError, Status, TaskError
from ..builders import DAY, HOUR, MICROSECOND, SECOND
from ..fakes import Time
from .queue_fixtures import (
    BACKOFF,
    QUICK,
    QueueFixtures,
    enqueue_one,
    faults,
    lease,
    lease_one,
    ref,
    settle,
)

_BOOM = TaskError(type="ValueError", message="boom", traceback="line 1\nline 2")


class CompleteContract(QueueFixtures):
    """A completed task has succeeded, with its result."""

    async def test_a_completed_task_has_succeeded(self, queue: TaskQueue, time: Time) -> None:
        task = await enqueue_one(queue, NewTask(type="send", payload='{"to": "ada"}'))
        leased = await lease_one(queue)
        before = time.now()

        answer = await settle(queue, Complete(ref=ref(leased), result='{"sent":true}'))

        shown = await queue.get(task.id)
        assert answer is None
        assert shown.finished_at is not None
        assert before <= shown.finished_at <= time.now()
        assert shown == attrs.evolve(
            task,
            status=Status.SUCCEEDED,
            attempts=1,
            updated_at=shown.finished_at,
            finished_at=shown.finished_at,
            result=JsonText('{"sent": true}'),
        )

    @pytest.mark.parametrize(
        ("said", "kept"),
        [
            ("", None),
            ("null", "null"),
            ("3", "3"),
            ('"x"', '"x"'),
            ("[ ]", "[]"),
            ("9007199254740993", "9007199254740993"),
            ('{"b":1,"a":"\\ud83e\\udd8a"}', '{"a": "🦊", "b": 1}'),
        ],
        ids=["none", "null", "a number", "a text", "an array", "a large integer", "an object"],
    )
    async def test_a_result_is_kept(self, queue: TaskQueue, said: str, kept: str | None) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        await settle(queue, Complete(ref=ref(leased), result=said))

        assert (await queue.get(leased.task.id)).result == kept

    @pytest.mark.parametrize(
        "result",
        [
            "NaN",
            "{",
            "[1e400]",
            '"\\u0000"',
            '"\\ud800"',
            '"\ud800"',
            '"' + "x" * 1024 * 1024 + '"',
        ],
        ids=["NaN", "no JSON", "infinite", "NUL", "surrogate escape", "surrogate", "too large"],
    )
    async def test_a_bad_result_is_refused_and_the_attempt_goes_on(
        self, queue: TaskQueue, result: str
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        refused = await settle(queue, Complete(ref=ref(leased), result=result))

        [field] = faults(refused)
        assert field.startswith("result")
        assert await queue.get(leased.task.id) == leased.task
        assert await settle(queue, Fail(ref=ref(leased), error=_BOOM)) is None


class FailContract(QueueFixtures):
    """A failed attempt is recorded; the task waits for the next one or is given up."""

    async def test_a_failed_task_is_queued_again_with_the_error(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue, NewTask(type="send"))
        leased = await lease_one(queue, worker_id="worker-7")
        before = time.now()

        answer = await settle(queue, Fail(ref=ref(leased), error=_BOOM))

        shown = await queue.get(task.id)
        assert answer is None
        assert before <= shown.updated_at <= time.now()
        assert 4 * SECOND <= shown.run_after - shown.updated_at < 6 * SECOND
        assert shown == attrs.evolve(
            task,
            attempts=1,
            run_after=shown.run_after,
            updated_at=shown.updated_at,
            last_error="ValueError: boom",
            errors=(
                AttemptError(
                    attempt=1,
                    worker_id=WorkerId("worker-7"),
                    at=shown.updated_at,
                    type="ValueError",
                    message="boom",
                    traceback="line 1\nline 2",
                ),
            ),
        )

    async def test_a_task_that_failed_twice_and_then_succeeded_had_three_attempts(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue)
        for number in (1, 2):
            error = TaskError(type="ValueError", message=f"boom {number}")
            await settle(queue, Fail(ref=ref(await lease_one(queue)), error=error))
            await time.pass_by(BACKOFF)

        await settle(queue, Complete(ref=ref(await lease_one(queue))))

        shown = await queue.get(task.id)
        assert (shown.status, shown.attempts) == (Status.SUCCEEDED, 3)
        assert [(e.attempt, e.message) for e in shown.errors] == [(1, "boom 1"), (2, "boom 2")]

    async def test_a_failed_task_is_not_leased_before_its_wait_is_over(
        self, queue: TaskQueue, time: Time
    ) -> None:
        await enqueue_one(queue, attrs.evolve(QUICK, retry_base=SECOND, retry_cap=SECOND))
        await settle(queue, Fail(ref=ref(await lease_one(queue))))

        at_once = await lease(queue)
        await time.pass_by(1.5 * SECOND)
        later = await lease(queue)

        assert (len(at_once), len(later)) == (0, 1)

    async def test_waits_double_up_to_the_cap(self, queue: TaskQueue, time: Time) -> None:
        self.needs_manual_time()
        new = NewTask(type="send", retry_base=SECOND, retry_cap=10 * SECOND)
        task = await enqueue_one(queue, new)
        waits = []

        for _ in range(5):
            await settle(queue, Fail(ref=ref(await lease_one(queue))))
            waits.append((await queue.get(task.id)).run_after - time.now())
            await time.pass_by(waits[-1])

        assert waits == [2 * SECOND, 4 * SECOND, 8 * SECOND, 10 * SECOND, 10 * SECOND]

    @pytest.mark.parametrize("wait", [timedelta(0), MICROSECOND, 7 * HOUR, 365 * DAY])
    async def test_a_worker_may_say_how_long_to_wait(
        self, queue: TaskQueue, wait: timedelta
    ) -> None:
        task = await enqueue_one(queue, NewTask(type="send"))

        await settle(queue, Fail(ref=ref(await lease_one(queue)), retry_after=wait))

        shown = await queue.get(task.id)
        assert shown.run_after == shown.updated_at + wait

    @pytest.mark.parametrize("wait", [-MICROSECOND, 365 * DAY + MICROSECOND, timedelta.max])
    async def test_a_wait_beyond_bounds_is_refused(self, queue: TaskQueue, wait: timedelta) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        refused = await settle(queue, Fail(ref=ref(leased), retry_after=wait))

        assert faults(refused) == ["retry_after"]
        assert await queue.get(leased.task.id) == leased.task

    async def test_the_last_failed_attempt_kills_the_task(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=2))
        await settle(queue, Fail(ref=ref(await lease_one(queue)), error=_BOOM))
        await time.pass_by(BACKOFF)

        await settle(queue, Fail(ref=ref(await lease_one(queue)), error=_BOOM))

        shown = await queue.get(task.id)
        assert (shown.status, shown.attempts) == (Status.DEAD, 2)
        assert shown.finished_at == shown.updated_at
        assert shown.last_error == "ValueError: boom"
        assert [error.attempt for error in shown.errors] == [1, 2]
        await time.pass_by(BACKOFF)
        assert await lease(queue) == []

    async def test_a_failure_without_retry_gives_the_task_up(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)
        leased = await lease_one(queue)

        await settle(queue, Fail(ref=ref(leased), error=_BOOM, retry=False, retry_after=SECOND))

        shown = await queue.get(task.id)
        assert (shown.status, shown.attempts) == (Status.FAILED, 1)
        assert shown.finished_at == shown.updated_at
        assert shown.run_after == task.run_after
        assert shown.last_error == "ValueError: boom"

    async def test_the_last_ten_errors_are_kept(self, queue: TaskQueue, time: Time) -> None:
        task = await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=20))

        for number in range(1, 13):
            error = TaskError(type="E", message=str(number))
            await settle(queue, Fail(ref=ref(await lease_one(queue)), error=error))
            await time.pass_by(BACKOFF)

        shown = await queue.get(task.id)
        assert [error.attempt for error in shown.errors] == list(range(3, 13))
        assert [error.message for error in shown.errors] == [str(n) for n in range(3, 13)]
        assert shown.last_error == "E: 12"


class ErrorTextContract(QueueFixtures):
    """What a worker reports is never refused for its content: it is cleaned and cut."""

    @pytest.mark.parametrize(
        ("error", "message"),
        [
            (TaskError(type="E", message="boom\x00"), "boom\ufffd"),
            (TaskError(type="E", message="a\ud800b\udfff"), "a\ufffdb\ufffd"),
            (TaskError(type="E", message="🦊 \u2028\t\r\n\x1b\x7f"), "🦊 \u2028\t\r\n\x1b\x7f"),
        ],
        ids=["NUL", "lone surrogates", "odd but storable"],
    )
    async def test_a_message_is_cleaned(
        self, queue: TaskQueue, error: TaskError, message: str
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        assert await settle(queue, Fail(ref=ref(leased), error=error)) is None

        assert (await queue.get(leased.task.id)).errors[-1].message == message

    async def test_all_texts_are_cleaned(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        error = TaskError(type="E\x00", message="m\x00", traceback="t\x00\ud800")

        await settle(queue, Fail(ref=ref(leased), error=error))

        [kept] = (await queue.get(leased.task.id)).errors
        assert (kept.type, kept.message, kept.traceback) == ("E\ufffd", "m\ufffd", "t\ufffd\ufffd")

    async def test_an_error_of_ten_megabytes_is_cut(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        ten_megabytes = "ä" * 5_000_000
        error = TaskError(type="E" * 1000, message=ten_megabytes, traceback=ten_megabytes + "end")

        answer = await settle(queue, Fail(ref=ref(leased), error=error))

        [kept] = (await queue.get(leased.task.id)).errors
        size = sum(len(text.encode()) for text in (kept.type, kept.message, kept.traceback))
        assert answer is None
        assert 8 * 1024 < size <= 16 * 1024
        assert kept.message.startswith("ää")
        assert kept.traceback.endswith("ääend")

    async def test_an_error_without_words_is_an_error(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        await settle(queue, Fail(ref=ref(leased)))

        shown = await queue.get(leased.task.id)
        assert shown.last_error == "Error"
        assert [(error.type, error.message) for error in shown.errors] == [("Error", "")]
