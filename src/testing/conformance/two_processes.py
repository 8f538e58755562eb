"""Two processes on one storage: what one has done, the other knows."""

from __future__ import annotations

from datetime import timedelta

from ...domain.errors import LostReason
from ...domain.ports import Maintenance, TaskQueue
from ...domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
)
from ...domain.views import Beat, Enqueued
from ..builders import HOUR, SECOND
from ..fakes import Time
from .queue_fixtures import Services, enqueue_one, lease_one, lost, ref, settle
from .waits import WaitContract


class TwoProcessesContract(WaitContract):
    """Nothing depends on which process a call arrives at."""

    async def test_a_lease_may_be_settled_in_another_process(
        self, queue: TaskQueue, elsewhere: Services
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        there = await settle(elsewhere.queue, Complete(ref=ref(leased), result="1"))
        here = await settle(queue, Complete(ref=ref(leased), result="2"))
        other_word = await settle(queue, Fail(ref=ref(leased)))

        assert (there, here) == (None, None)
        assert lost(other_word) is LostReason.TASK_FINISHED
        assert (await queue.get(leased.task.id)).result == "1"

    async def test_a_cancel_in_another_process_is_told_by_the_next_beat(
        self, queue: TaskQueue, elsewhere: Services
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        first = await _beat(queue, leased_for=HOUR, of=ref(leased))
        await elsewhere.admin.cancel([leased.task.id])

        second = await _beat(queue, leased_for=HOUR, of=ref(leased))

        assert isinstance(first, Beat)
        assert isinstance(second, Beat)
        assert (first.cancel_requested, second.cancel_requested) == (False, True)

    async def test_a_lease_renewed_in_another_process_lives_here(
        self, queue: TaskQueue, elsewhere: Services, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await _beat(elsewhere.queue, leased_for=HOUR, of=ref(leased))
        await time.pass_by(SECOND)

        answer = await settle(queue, Complete(ref=ref(leased)))

        assert answer is None

    async def test_a_lease_reaped_in_another_process_is_lost_here(
        self, queue: TaskQueue, elsewhere: Services, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)
        await elsewhere.maintenance.reap()
        await time.pass_by(SECOND)
        again = await lease_one(elsewhere.queue, worker_id="worker-2")

        beat = await _beat(queue, leased_for=HOUR, of=ref(leased))
        late = await settle(queue, Complete(ref=ref(leased)))

        assert lost(beat) is LostReason.LEASE_SUPERSEDED
        assert lost(late) is LostReason.LEASE_SUPERSEDED
        assert await settle(elsewhere.queue, Complete(ref=ref(again))) is None

    async def test_a_task_released_and_leased_in_another_process_is_lost_here(
        self, queue: TaskQueue, elsewhere: Services
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        await settle(elsewhere.queue, Release(ref=ref(leased)))
        again = await lease_one(elsewhere.queue)

        late = await settle(queue, Fail(ref=ref(leased)))

        assert lost(late) is LostReason.LEASE_SUPERSEDED
        assert (await queue.get(leased.task.id)).attempts == 0
        assert again.lease_number == 2

    async def test_two_reapers_count_an_attempt_once(
        self, queue: TaskQueue, maintenance: Maintenance, elsewhere: Services, time: Time
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)

        reaped = [await elsewhere.maintenance.reap(), await maintenance.reap()]

        assert reaped == [1, 0]
        assert (await queue.get(leased.task.id)).attempts == 1

    async def test_a_key_taken_in_another_process_is_taken_here(
        self, queue: TaskQueue, elsewhere: Services
    ) -> None:
        new = NewTask(type="send", idempotency_key="k-1")
        [there] = await elsewhere.queue.enqueue([new])

        [here] = await queue.enqueue([new])

        assert isinstance(there, Enqueued)
        assert isinstance(here, Enqueued)
        assert (here.created, here.task.id) == (False, there.task.id)

    async def test_a_task_from_another_process_is_found_within_a_second(
        self, queue: TaskQueue, elsewhere: Services, time: Time
    ) -> None:
        async with self.polling(queue, time) as polling:
            task = await enqueue_one(elsewhere.queue)
            await time.pass_by(SECOND)

            assert [each.task.id for each in await polling] == [task.id]

    async def test_a_paused_queue_is_paused_for_all(
        self, queue: TaskQueue, elsewhere: Services
    ) -> None:
        await enqueue_one(queue)
        await elsewhere.admin.pause_queue("default")

        leased = await queue.lease(LeaseRequest(worker_id="w"))

        assert leased == []


async def _beat(queue: TaskQueue, *, leased_for: timedelta, of: LeaseRef) -> object:
    [answer] = await queue.heartbeat(
        HeartbeatRequest(worker_id="w", leases=(of,), lease_duration=leased_for)
    )
    return answer
