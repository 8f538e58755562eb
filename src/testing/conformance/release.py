"""Giving tasks back, losing them with a worker, and ending many attempts at once."""

from __future__ import annotations

import attrs

from ...domain.errors import LostReason, TaskNotFoundError
from ...domain.ports import Maintenance, TaskQueue
from ...domain.requests import Complete, Fail, HeartbeatRequest, LeaseRef, NewTask, Release
from ...domain.task import Status, TaskError
from ...domain.views import Beat
from ..builders import MICROSECOND, MINUTE, SECOND
from ..fakes import Time
from .queue_fixtures import (
    BACKOFF,
    QUICK,
    QueueFixtures,
    enqueue,
    enqueue_one,
    faults,
    lease,
    lease_one,
    lost,
    ref,
    settle,
)


class ReleaseContract(QueueFixtures):
    """A release costs nothing, ten times."""

    async def test_a_released_task_is_queued_as_it_was(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)
        leased = await lease_one(queue)

        answer = await settle(queue, Release(ref=ref(leased)))

        shown = await queue.get(task.id)
        assert answer is None
        assert shown == attrs.evolve(task, updated_at=shown.updated_at)

    async def test_a_released_task_keeps_its_place(self, queue: TaskQueue, time: Time) -> None:
        first = await enqueue_one(queue)
        await time.pass_by(SECOND / 100)
        await enqueue_one(queue)
        leased = await lease_one(queue)

        await settle(queue, Release(ref=ref(leased)))

        assert (await lease_one(queue)).task.id == first.id

    async def test_the_eleventh_release_counts_as_a_failed_attempt(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)
        for _ in range(10):
            await settle(queue, Release(ref=ref(await lease_one(queue))))
        after_ten = await queue.get(task.id)

        await settle(queue, Release(ref=ref(await lease_one(queue))))

        after_eleven = await queue.get(task.id)
        assert (after_ten.attempts, after_ten.errors) == (0, ())
        assert after_eleven.attempts == 1
        assert after_eleven.run_after > task.run_after
        assert [error.type for error in after_eleven.errors] == ["ReleasedTooOften"]

    async def test_releases_of_what_was_not_delivered_cost_nothing_however_many(
        self, queue: TaskQueue
    ) -> None:
        task = await enqueue_one(queue)

        for _ in range(12):
            leased = await lease_one(queue)
            await settle(queue, Release(ref=ref(leased), undelivered=True))

        shown = await queue.get(task.id)
        assert shown == attrs.evolve(task, updated_at=shown.updated_at)

    async def test_endless_releases_end_in_death(self, queue: TaskQueue, time: Time) -> None:
        task = await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=3))

        for _ in range(13):
            await settle(queue, Release(ref=ref(await lease_one(queue))))
            await time.pass_by(BACKOFF)

        shown = await queue.get(task.id)
        assert (shown.status, shown.attempts) == (Status.DEAD, 3)


class ExpiryContract(QueueFixtures):
    """A lease that ends by itself is a failed attempt."""

    async def test_a_reaped_task_is_queued_again_with_an_error(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        task = await enqueue_one(queue, attrs.evolve(QUICK, retry_base=SECOND, retry_cap=SECOND))
        await lease_one(queue, worker_id="lost-1", lease_duration=SECOND)
        await time.pass_by(SECOND)

        reaped = await maintenance.reap()

        shown = await queue.get(task.id)
        assert reaped == 1
        assert (shown.status, shown.attempts) == (Status.QUEUED, 1)
        assert (shown.lease_owner, shown.lease_expires_at) == (None, None)
        assert SECOND <= shown.run_after - shown.updated_at < 1.5 * SECOND
        [error] = shown.errors
        assert (error.attempt, error.worker_id, error.type) == (1, "lost-1", "LeaseExpired")
        assert await maintenance.reap() == 0

    async def test_a_lost_worker_costs_the_last_attempt(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        task = await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=1))
        await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)

        await maintenance.reap()

        shown = await queue.get(task.id)
        assert (shown.status, shown.attempts) == (Status.DEAD, 1)
        assert shown.last_error is not None
        assert shown.last_error.startswith("LeaseExpired: ")

    async def test_a_lease_is_reaped_from_its_end_on(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        self.needs_manual_time()
        await enqueue_one(queue)
        await lease_one(queue, lease_duration=SECOND)

        await time.pass_by(SECOND - MICROSECOND)
        before_its_end = await maintenance.reap()
        await time.pass_by(MICROSECOND)
        at_its_end = await maintenance.reap()

        assert (before_its_end, at_its_end) == (0, 1)

    async def test_many_leases_are_reaped_in_one_pass(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        # A client gives leases back of which the way took half; a busy machine takes its time.
        long = MINUTE if self.manual_time else SECOND
        await enqueue(queue, *[QUICK] * 1000)
        await enqueue(queue, *[attrs.evolve(QUICK, queue="other")] * 200)
        await lease(queue, max_tasks=1000, lease_duration=long)
        await lease(queue, queues=["other"], max_tasks=200, lease_duration=long)
        await time.pass_by(long)

        reaped = await maintenance.reap()

        assert reaped == 1200


class SettleBatchContract(QueueFixtures):
    """A batch of settlements is answered item by item, in its order."""

    async def test_a_mixed_batch_of_settlements_is_answered_in_its_order(
        self, queue: TaskQueue
    ) -> None:
        await enqueue(queue, *[QUICK] * 5)
        done, failed, back, ended, bad = await lease(queue, max_tasks=5)
        await settle(queue, Complete(ref=ref(ended)))
        unknown = LeaseRef(task_id="01890000-0000-7000-8000-000000000000", lease_token="t")

        answers = await queue.settle(
            [
                Release(ref=ref(back)),
                Complete(ref=unknown),
                Fail(ref=ref(failed), error=TaskError(type="E")),
                Release(ref=ref(ended)),
                Complete(ref=ref(bad), result="NaN"),
                Complete(ref=ref(done), result="1"),
            ]
        )

        assert [answers[0], answers[2], answers[5]] == [None, None, None]
        assert isinstance(answers[1], TaskNotFoundError)
        assert answers[1].task_id == unknown.task_id
        assert lost(answers[3]) is LostReason.TASK_FINISHED
        assert faults(answers[4]) == ["result"]
        shown = [await queue.get(each.task.id) for each in (done, failed, back, bad)]
        assert [(task.status, task.attempts) for task in shown] == [
            (Status.SUCCEEDED, 1),
            (Status.QUEUED, 1),
            (Status.QUEUED, 0),
            (Status.LEASED, 0),
        ]

    async def test_settlements_of_one_task_are_met_in_their_order(self, queue: TaskQueue) -> None:
        await enqueue(queue, QUICK, QUICK)
        one, two = await lease(queue, max_tasks=2)

        answers = await queue.settle(
            [
                Complete(ref=ref(one), result="1"),
                Fail(ref=ref(two)),
                Complete(ref=ref(one), result="2"),
                Complete(ref=ref(two)),
                Fail(ref=ref(one)),
                Fail(ref=ref(two)),
            ]
        )

        assert [answers[0], answers[1], answers[2], answers[5]] == [None] * 4
        assert lost(answers[3]) is LostReason.LEASE_SUPERSEDED
        assert lost(answers[4]) is LostReason.TASK_FINISHED
        assert (await queue.get(one.task.id)).result == "1"
        assert (await queue.get(two.task.id)).attempts == 1

    async def test_ids_may_be_spelt_in_capitals(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        loud = LeaseRef(task_id=leased.task.id.upper(), lease_token=leased.lease_token)

        [beat] = await queue.heartbeat(HeartbeatRequest(worker_id="w", leases=(loud,)))
        answers = await queue.settle([Complete(ref=loud), Complete(ref=ref(leased))])

        assert isinstance(beat, Beat)
        assert answers == [None, None]

    async def test_no_settlements_are_answered_with_nothing(self, queue: TaskQueue) -> None:
        assert await queue.settle([]) == []

    async def test_a_thousand_attempts_are_ended_at_once(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[NewTask(type="send")] * 1000)
        leased = await lease(queue, max_tasks=1000)

        answers = await queue.settle([Complete(ref=ref(each)) for each in leased])

        assert answers == [None] * 1000
