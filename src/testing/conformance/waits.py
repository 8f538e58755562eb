"""Waiting for a task: told at once, and never longer than asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from ...domain.ports import TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, LeaseRequest, NewTask, Release
from ...domain.views import LeasedTask
from ..builders import HOUR, MICROSECOND, SECOND
from ..fakes import Time
from .queue_fixtures import QueueFixtures, enqueue_one, lease_one, ref, settle

_WAIT = 10 * SECOND
_PATIENCE = 20.0


class WaitContract(QueueFixtures):
    """A Lease with a `wait` returns as soon as a task is due, or empty."""

    @asynccontextmanager
    async def polling(
        self,
        queue: TaskQueue,
        time: Time,
        *,
        worker_id: str = "w-1",
        queues: tuple[str, ...] = (),
        types: tuple[str, ...] = (),
        wait: timedelta = _WAIT,
    ) -> AsyncIterator[asyncio.Task[list[LeasedTask]]]:
        """Let a worker wait, from before the block to its end at most."""
        if not self.waits:
            pytest.skip(f"{type(self).__name__}.waits is False: it leaves waiting to others")
        request = LeaseRequest(worker_id=worker_id, queues=queues, types=types, wait=wait)
        async with asyncio.timeout(_PATIENCE):
            call = asyncio.create_task(queue.lease(request))
            try:
                await time.until_waiting()
                yield call
            finally:
                call.cancel()
                await asyncio.wait([call])

    async def test_what_is_due_is_leased_without_a_wait(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)

        async with asyncio.timeout(_PATIENCE):
            [leased] = await queue.lease(LeaseRequest(worker_id="w", wait=_WAIT))

        assert leased.task.id == task.id

    async def test_an_empty_queue_is_told_when_the_wait_is_over(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with self.polling(queue, time, wait=SECOND) as polling:
            await time.pass_by(SECOND)

            assert await polling == []

    async def test_a_wait_is_not_over_before_its_end(self, queue: TaskQueue, time: Time) -> None:
        self.needs_manual_time()
        async with self.polling(queue, time, wait=_WAIT) as polling:
            await time.pass_by(_WAIT - MICROSECOND)
            await time.until_waiting()

            assert not polling.done()

    async def test_a_wait_is_cut_to_thirty_seconds(self, queue: TaskQueue, time: Time) -> None:
        self.needs_manual_time()
        async with self.polling(queue, time, wait=HOUR) as polling:
            await time.pass_by(30 * SECOND)

            assert await polling == []

    async def test_an_enqueue_ends_the_wait(self, queue: TaskQueue, time: Time) -> None:
        async with self.polling(queue, time) as polling:
            task = await enqueue_one(queue)

            assert _ids(await polling) == [task.id]

    async def test_a_task_for_later_ends_the_wait_when_it_is_due(
        self, queue: TaskQueue, time: Time
    ) -> None:
        soon = SECOND / 4  # before the next look that the waiting process takes anyway
        task = await enqueue_one(queue, NewTask(type="send", delay=soon))
        async with self.polling(queue, time) as polling:
            await time.pass_by(soon)

            assert _ids(await polling) == [task.id]

    async def test_a_task_for_later_does_not_end_the_wait_too_early(
        self, queue: TaskQueue, time: Time
    ) -> None:
        self.needs_manual_time()
        await enqueue_one(queue, NewTask(type="send", delay=5 * SECOND))
        async with self.polling(queue, time) as polling:
            await time.pass_by(5 * SECOND - MICROSECOND)
            await time.until_waiting()

            assert not polling.done()

    async def test_a_task_for_later_enqueued_meanwhile_ends_the_wait_when_due(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with self.polling(queue, time) as polling:
            task = await enqueue_one(queue, NewTask(type="send", delay=SECOND / 4))
            await time.until_waiting()
            await time.pass_by(SECOND / 4)

            assert _ids(await polling) == [task.id]

    async def test_tasks_of_other_queues_and_types_do_not_end_the_wait(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with self.polling(queue, time, wait=SECOND, types=("send",)) as polling:
            await enqueue_one(queue, NewTask(type="send", queue="other"))
            await enqueue_one(queue, NewTask(type="resize"))
            await time.until_waiting()
            await time.pass_by(SECOND)

            assert await polling == []

    async def test_a_wait_on_several_queues_ends_with_any(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with self.polling(queue, time, queues=("a", "b")) as polling:
            task = await enqueue_one(queue, NewTask(type="send", queue="b"))

            assert _ids(await polling) == [task.id]

    async def test_a_released_task_ends_the_wait(self, queue: TaskQueue, time: Time) -> None:
        task = await enqueue_one(queue)
        held = await lease_one(queue)
        async with self.polling(queue, time) as polling:
            await settle(queue, Release(ref=ref(held)))

            assert _ids(await polling) == [task.id]

    async def test_a_failed_task_that_is_due_again_ends_the_wait(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue)
        held = await lease_one(queue)
        async with self.polling(queue, time) as polling:
            await settle(queue, Fail(ref=ref(held), retry_after=timedelta(0)))

            assert _ids(await polling) == [task.id]

    async def test_a_requeued_task_ends_the_wait(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time
    ) -> None:
        task = await enqueue_one(queue)
        await admin.cancel([task.id])
        async with self.polling(queue, time) as polling:
            await admin.requeue([task.id])

            assert _ids(await polling) == [task.id]

    async def test_a_resumed_queue_ends_the_wait(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time
    ) -> None:
        await admin.pause_queue("default")
        task = await enqueue_one(queue)
        async with self.polling(queue, time) as polling:
            await admin.resume_queue("default")

            assert _ids(await polling) == [task.id]

    async def test_a_wait_on_a_paused_queue_goes_on(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time
    ) -> None:
        await admin.pause_queue("default")
        async with self.polling(queue, time, wait=SECOND) as polling:
            await enqueue_one(queue)
            await time.until_waiting()
            await time.pass_by(SECOND)

            assert await polling == []

    async def test_of_two_that_wait_one_gets_the_task_and_one_waits_on(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with (
            self.polling(queue, time, worker_id="w-1") as one,
            self.polling(queue, time, worker_id="w-2") as two,
        ):
            first = await enqueue_one(queue)
            done, waiting = await asyncio.wait(
                [one, two], timeout=_PATIENCE, return_when=asyncio.FIRST_COMPLETED
            )
            assert [_ids(answer.result()) for answer in done] == [[first.id]]
            await time.until_waiting()

            second = await enqueue_one(queue)

            assert [_ids(await answer) for answer in waiting] == [[second.id]]

    async def test_one_that_goes_away_takes_no_task_with_it(
        self, queue: TaskQueue, time: Time
    ) -> None:
        async with self.polling(queue, time) as polling:
            polling.cancel()
            await asyncio.wait([polling])
        await enqueue_one(queue)

        [leased] = await queue.lease(LeaseRequest(worker_id="w-2", wait=_WAIT))

        assert leased.attempt == 1
        assert await settle(queue, Complete(ref=ref(leased))) is None


def _ids(leased: list[LeasedTask]) -> list[str]:
    return [each.task.id for each in leased]
