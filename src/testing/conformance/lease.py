"""Leasing through the queue: what a worker is told, whose turn it is, how much fits."""

from __future__ import annotations

import asyncio

import attrs

from ...domain.ids import WorkerId
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Fail, LeaseRequest, NewTask, Release
from ...domain.task import Status, TaskError
from ...domain.views import LeasedTask
from ..builders import HOUR, SECOND
from ..fakes import Time
from .queue_fixtures import (
    BACKOFF,
    QUICK,
    QueueFixtures,
    enqueue,
    enqueue_one,
    lease,
    lease_one,
    ref,
    settle,
)

_A, _B = NewTask(type="send", queue="a"), NewTask(type="send", queue="b")


class LeaseContract(QueueFixtures):
    """`lease` hands out what is due."""

    async def test_a_leased_task_is_shown_with_its_holder(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue, NewTask(type="send", payload='{"to": "ada"}'))
        before = time.now()

        leased = await lease_one(queue, worker_id="host-1:99", lease_duration=2 * SECOND)

        after = time.now()
        expires_at, updated_at = leased.task.lease_expires_at, leased.task.updated_at
        assert expires_at is not None
        assert before + 2 * SECOND <= expires_at <= after + 2 * SECOND
        assert before <= updated_at <= after
        assert leased.task == attrs.evolve(
            task,
            status=Status.LEASED,
            lease_owner=WorkerId("host-1:99"),
            lease_expires_at=expires_at,
            updated_at=updated_at,
        )
        assert await queue.get(task.id) == leased.task

    async def test_a_first_lease_is_number_one_of_attempt_one(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)

        leased = await lease_one(queue, lease_duration=HOUR)

        assert (leased.lease_number, leased.attempt) == (1, 1)
        assert HOUR - 10 * SECOND <= leased.lease_duration <= HOUR
        assert 1 <= len(leased.lease_token) <= 100

    async def test_a_lease_lasts_thirty_seconds_if_nothing_is_said(
        self, queue: TaskQueue, time: Time
    ) -> None:
        await enqueue_one(queue)
        before = time.now()

        leased = await lease_one(queue)

        assert leased.task.lease_expires_at is not None
        assert before + 30 * SECOND <= leased.task.lease_expires_at <= time.now() + 30 * SECOND

    async def test_what_is_not_due_is_not_leased(self, queue: TaskQueue) -> None:
        await enqueue_one(queue, NewTask(type="send", delay=HOUR))

        assert await lease(queue) == []

    async def test_a_delayed_task_is_leased_when_its_time_has_come(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue, NewTask(type="send", delay=SECOND / 10))

        await time.pass_by(SECOND / 10)

        assert [each.task.id for each in await lease(queue)] == [task.id]

    async def test_a_leased_task_is_not_leased_again(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        await lease_one(queue)

        assert await lease(queue, worker_id="worker-2") == []

    async def test_more_urgent_tasks_come_first(self, queue: TaskQueue) -> None:
        low, high, middle = await enqueue(
            queue, *(NewTask(type="send", priority=priority) for priority in (0, 255, 7))
        )

        leased = await lease(queue, max_tasks=3)

        assert [each.task.id for each in leased] == [high.id, middle.id, low.id]

    async def test_only_tasks_of_the_types_are_leased(self, queue: TaskQueue) -> None:
        _, resize, crop = await enqueue(
            queue, *(NewTask(type=type_) for type_ in ("send", "resize", "crop"))
        )

        leased = await queue.lease(
            LeaseRequest(worker_id="w", types=("resize", "crop", "unheard-of"), max_tasks=10)
        )

        assert [each.task.id for each in leased] == [resize.id, crop.id]

    async def test_tokens_differ_between_leases(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[QUICK] * 3)
        leased = await lease(queue, max_tasks=3)
        await settle(queue, Release(ref=ref(leased[0])))

        again = await lease_one(queue)

        assert len({each.lease_token for each in (*leased, again)}) == 4

    async def test_concurrent_workers_get_different_tasks(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, *[QUICK] * 12)

        answers = await asyncio.gather(
            *(lease(queue, worker_id=f"worker-{number}") for number in range(30))
        )

        leased = [each.task.id for answer in answers for each in answer]
        assert sorted(leased) == sorted(task.id for task in tasks)

    async def test_a_thousand_are_leased_at_once(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, *[NewTask(type="t" * 100, queue="q" * 100)] * 1000)

        leased = await lease(queue, queues=["q" * 100], max_tasks=1000)

        assert [each.task.id for each in leased] == [task.id for task in tasks]

    async def test_a_lease_tells_nothing_of_earlier_attempts(
        self, queue: TaskQueue, time: Time
    ) -> None:
        task = await enqueue_one(queue)
        first = await lease_one(queue)
        error = TaskError(type="ValueError", message="boom", traceback="x" * 10_000)
        await settle(queue, Fail(ref=ref(first), error=error))
        await time.pass_by(BACKOFF)

        second = await lease_one(queue)

        shown = await queue.get(task.id)
        assert (second.task.errors, second.task.last_error, second.task.result) == ((), None, None)
        assert len(shown.errors) == 1
        assert attrs.evolve(shown, errors=(), last_error=None) == second.task

    async def test_attempts_and_lease_numbers_rise_as_attempts_end(
        self, queue: TaskQueue, admin: TaskAdmin, maintenance: Maintenance, time: Time
    ) -> None:
        task = await enqueue_one(queue)

        async def again() -> LeasedTask:
            await time.pass_by(BACKOFF)
            return await lease_one(queue, lease_duration=SECOND)

        released = await again()
        await settle(queue, Release(ref=ref(released)))
        failed = await again()
        await settle(queue, Fail(ref=ref(failed)))
        expired = await again()
        await time.pass_by(SECOND)
        await maintenance.reap()
        given_up = await again()
        await settle(queue, Fail(ref=ref(given_up), retry=False))
        await admin.requeue([task.id])
        anew = await again()

        leases = (released, failed, expired, given_up, anew)
        assert [each.lease_number for each in leases] == [1, 2, 3, 4, 5]
        assert [each.attempt for each in leases] == [1, 1, 2, 3, 1]


class QueueTurnContract(QueueFixtures):
    """The queues of a request are served in turn, or in order where the caller says so."""

    async def test_no_queue_means_the_default_one(self, queue: TaskQueue) -> None:
        await enqueue_one(queue, _A)
        default = await enqueue_one(queue, NewTask(type="send"))

        assert [each.task.id for each in await lease(queue, max_tasks=2)] == [default.id]

    async def test_queues_are_served_in_turn(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[_A] * 3, *[_B] * 3)

        served = [await _queue_served(queue, strict_order=False) for _ in range(6)]

        assert served in (["a", "b"] * 3, ["b", "a"] * 3)

    async def test_queues_are_served_in_the_order_given(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[_A] * 3, *[_B] * 3)

        served = [await _queue_served(queue, strict_order=True) for _ in range(6)]

        assert served == ["b"] * 3 + ["a"] * 3

    async def test_one_call_takes_from_all_queues(self, queue: TaskQueue) -> None:
        await enqueue(queue, _A, _B, NewTask(type="send", queue="c"))

        leased = await queue.lease(
            LeaseRequest(worker_id="w", queues=("c", "a"), max_tasks=5, strict_order=True)
        )

        assert [each.task.queue for each in leased] == ["c", "a"]

    async def test_a_queue_named_twice_counts_once(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, _A, _A)

        leased = await lease(queue, queues=["a", "a"], max_tasks=5)

        assert [each.task.id for each in leased] == [task.id for task in tasks]

    async def test_no_more_come_than_were_asked_for(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[_A] * 3, *[_B] * 3)

        assert len(await lease(queue, queues=["a", "b"], max_tasks=4)) == 4

    async def test_nothing_comes_from_a_paused_queue(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue(queue, _A, _B)
        await admin.pause_queue("a")

        leased = await lease(queue, queues=["a", "b"], max_tasks=5)

        assert [each.task.queue for each in leased] == ["b"]

    async def test_a_resumed_queue_is_served_again(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await admin.pause_queue("a")
        await enqueue_one(queue, _A)
        await admin.resume_queue("a")

        assert len(await lease(queue, queues=["a"])) == 1


class ReplySizeContract(QueueFixtures):
    """A reply holds at most 3 MiB of payload, and at least one task."""

    async def test_three_mebibytes_fit_exactly(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, *[_of_size("a", 1024 * 1024)] * 4)

        first = await lease(queue, queues=["a"], max_tasks=10)
        second = await lease(queue, queues=["a"], max_tasks=10)

        assert [each.task.id for each in first] == [task.id for task in tasks[:3]]
        assert [each.task.id for each in second] == [tasks[3].id]
        assert second[0].lease_number == 1

    async def test_all_queues_share_one_reply(self, queue: TaskQueue) -> None:
        most = [_of_size("a", 800_000)] * 3
        await enqueue(queue, *most, _of_size("b", 1024 * 1024))
        both = LeaseRequest(worker_id="w", queues=("a", "b"), max_tasks=10, strict_order=True)

        first = await queue.lease(both)
        second = await queue.lease(both)

        assert [each.task.queue for each in first] == ["a"] * 3
        assert [each.task.queue for each in second] == ["b"]


async def _queue_served(queue: TaskQueue, *, strict_order: bool) -> str:
    [leased] = await queue.lease(
        LeaseRequest(worker_id="w", queues=("b", "a"), strict_order=strict_order)
    )
    return leased.task.queue


def _of_size(queue: str, size: int) -> NewTask:
    return NewTask(type="send", queue=queue, payload='{"a": "' + "x" * (size - 9) + '"}')
