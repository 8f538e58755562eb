"""Heartbeats: a lease lives as long as its worker says so in time."""

from __future__ import annotations

from datetime import timedelta

from ...domain.errors import LostReason, TaskNotFoundError
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, HeartbeatRequest, LeaseRef, Release
from ...domain.task import Status
from ...domain.views import Beat, LeasedTask
from ..builders import HOUR, MICROSECOND, SECOND
from ..fakes import Time
from .queue_fixtures import (
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

_UNKNOWN = LeaseRef(task_id="01890000-0000-7000-8000-000000000000", lease_token="t")


class HeartbeatContract(QueueFixtures):
    """`heartbeat` extends leases."""

    async def test_a_beat_makes_the_lease_last_from_now_on(
        self, queue: TaskQueue, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND / 2)
        before = time.now()

        beat = await _beat(queue, leased, lease_duration=HOUR)

        shown = await queue.get(leased.task.id)
        assert isinstance(beat, Beat)
        assert beat.cancel_requested is False
        assert HOUR - 10 * SECOND <= beat.lease_duration <= HOUR
        assert shown.lease_expires_at is not None
        assert before + HOUR <= shown.lease_expires_at <= time.now() + HOUR
        assert (shown.status, shown.lease_owner) == (Status.LEASED, "worker-1")

    async def test_a_beat_asks_for_thirty_seconds_if_nothing_is_said(
        self, queue: TaskQueue, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        before = time.now()

        await _beat(queue, leased)

        shown = await queue.get(leased.task.id)
        assert shown.lease_expires_at is not None
        assert before + 30 * SECOND <= shown.lease_expires_at <= time.now() + 30 * SECOND

    async def test_a_beat_never_makes_a_lease_shorter(self, queue: TaskQueue, time: Time) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=HOUR)
        await time.pass_by(SECOND / 100)

        beat = await _beat(queue, leased, lease_duration=SECOND)

        assert isinstance(beat, Beat)
        assert beat.lease_duration > HOUR - 10 * SECOND
        assert await queue.get(leased.task.id) == leased.task

    async def test_a_lease_renewed_in_time_outlives_its_first_end(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)

        for _ in range(3):
            await time.pass_by(0.6 * SECOND)
            assert isinstance(await _beat(queue, leased, lease_duration=SECOND), Beat)
            assert await maintenance.reap() == 0

        assert await settle(queue, Complete(ref=ref(leased))) is None
        assert (await queue.get(leased.task.id)).attempts == 1

    async def test_a_beat_is_in_time_until_just_before_the_end(
        self, queue: TaskQueue, time: Time
    ) -> None:
        self.needs_manual_time()
        await enqueue(queue, QUICK, QUICK)
        one, other = await lease(queue, max_tasks=2, lease_duration=SECOND)

        await time.pass_by(SECOND - MICROSECOND)
        in_time = await _beat(queue, one)
        await time.pass_by(MICROSECOND)
        too_late = await _beat(queue, other)

        assert isinstance(in_time, Beat)
        assert lost(too_late) is LostReason.LEASE_EXPIRED

    async def test_a_beat_after_the_end_is_refused_even_if_nobody_took_the_task(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)

        before_the_reaper = await _beat(queue, leased)
        await maintenance.reap()
        after_the_reaper = await _beat(queue, leased)

        assert lost(before_the_reaper) is LostReason.LEASE_EXPIRED
        assert lost(after_the_reaper) is LostReason.LEASE_EXPIRED

    async def test_a_beat_of_a_superseded_lease_is_refused(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        first = await lease_one(queue)
        await settle(queue, Release(ref=ref(first)))
        second = await lease_one(queue, worker_id="worker-2")

        assert lost(await _beat(queue, first)) is LostReason.LEASE_SUPERSEDED
        assert isinstance(await _beat(queue, second), Beat)

    async def test_a_beat_of_a_finished_task_is_refused(self, queue: TaskQueue) -> None:
        await enqueue(queue, QUICK, QUICK)
        completed, failed = await lease(queue, max_tasks=2)
        await queue.settle([Complete(ref=ref(completed)), Fail(ref=ref(failed), retry=False)])

        assert lost(await _beat(queue, completed)) is LostReason.TASK_FINISHED
        assert lost(await _beat(queue, failed)) is LostReason.TASK_FINISHED

    async def test_a_beat_tells_that_the_task_was_called_off(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await admin.cancel([leased.task.id])

        beat = await _beat(queue, leased, lease_duration=HOUR)
        again = await _beat(queue, leased, lease_duration=SECOND)

        assert isinstance(beat, Beat)
        assert isinstance(again, Beat)
        assert (beat.cancel_requested, again.cancel_requested) == (True, True)
        assert beat.lease_duration > SECOND

    async def test_a_mixed_batch_of_leases_is_answered_in_its_order(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[QUICK] * 3)
        one, two, three = await lease(queue, max_tasks=3)
        await settle(queue, Complete(ref=ref(two)))
        wrong = LeaseRef(task_id=three.task.id, lease_token="guessed")
        asked = [
            ref(three),
            _UNKNOWN,
            ref(two),
            LeaseRef(task_id="?", lease_token="t"),
            ref(one),
            wrong,
            ref(three),
        ]

        answers = await queue.heartbeat(
            HeartbeatRequest(worker_id="worker-1", leases=tuple(asked), lease_duration=HOUR)
        )

        assert [type(answer).__name__ for answer in answers] == [
            "Beat",
            "TaskNotFoundError",
            "LeaseLostError",
            "InvalidArgumentError",
            "Beat",
            "LeaseLostError",
            "Beat",
        ]
        assert isinstance(answers[1], TaskNotFoundError)
        assert answers[1].task_id == _UNKNOWN.task_id
        assert lost(answers[2]) is LostReason.TASK_FINISHED
        assert faults(answers[3]) == ["task_id"]
        assert lost(answers[5]) is LostReason.LEASE_SUPERSEDED

    async def test_no_leases_are_answered_with_nothing(self, queue: TaskQueue) -> None:
        assert await queue.heartbeat(HeartbeatRequest(worker_id="w", leases=())) == []

    async def test_a_thousand_leases_are_renewed_at_once(self, queue: TaskQueue) -> None:
        await enqueue(queue, *[QUICK] * 1000)
        leased = await lease(queue, max_tasks=1000)

        answers = await queue.heartbeat(
            HeartbeatRequest(worker_id="worker-1", leases=tuple(ref(each) for each in leased))
        )

        assert [type(answer) for answer in answers] == [Beat] * 1000


async def _beat(
    queue: TaskQueue, leased: LeasedTask, *, lease_duration: timedelta | None = None
) -> object:
    [answer] = await queue.heartbeat(
        HeartbeatRequest(worker_id="worker-1", leases=(ref(leased),), lease_duration=lease_duration)
    )
    return answer
