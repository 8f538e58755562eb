"""Leases fence: a repeat does nothing, and a worker that lost its lease can change nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import attrs
import pytest

from ...domain.errors import ContendedError, LeaseLostError, LostReason
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, LeaseRef, Release, Settlement
from ...domain.task import Status
from ...domain.views import Enqueued, LeasedTask
from ..builders import SECOND
from ..fakes import Time
from .queue_fixtures import BACKOFF, QUICK, QueueFixtures, enqueue_one, lease_one, lost, ref, settle

VERBS: Final[dict[str, Callable[[LeaseRef], Settlement]]] = {
    "complete": lambda lease: Complete(ref=lease, result='{"by": "the late one"}'),
    "fail": lambda lease: Fail(ref=lease),
    "fail without retry": lambda lease: Fail(ref=lease, retry=False),
    "release": lambda lease: Release(ref=lease),
}

# What the first settlement under a lease was, what the second is, and why it is refused.
CONTRADICTIONS: Final = [
    ("complete", "fail", LostReason.TASK_FINISHED),
    ("complete", "release", LostReason.TASK_FINISHED),
    ("fail", "complete", LostReason.LEASE_SUPERSEDED),
    ("fail", "release", LostReason.LEASE_SUPERSEDED),
    ("fail without retry", "complete", LostReason.TASK_FINISHED),
    ("fail without retry", "release", LostReason.TASK_FINISHED),
    ("release", "complete", LostReason.LEASE_SUPERSEDED),
    ("release", "fail", LostReason.LEASE_SUPERSEDED),
]

every_verb = pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS.keys())


class RepeatContract(QueueFixtures):
    """The same word under the same lease has its effect once."""

    @every_verb
    async def test_a_repeat_is_done_and_changes_nothing(
        self, queue: TaskQueue, time: Time, verb: Callable[[LeaseRef], Settlement]
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        await settle(queue, verb(ref(leased)))
        once = await queue.get(leased.task.id)
        await time.pass_by(BACKOFF)

        again = await settle(queue, verb(ref(leased)))

        assert again is None
        assert await queue.get(leased.task.id) == once

    @pytest.mark.parametrize("name", ["fail", "release"])
    async def test_a_repeat_does_not_touch_the_lease_that_came_after(
        self, queue: TaskQueue, time: Time, name: str
    ) -> None:
        await enqueue_one(queue)
        first = await lease_one(queue)
        await settle(queue, VERBS[name](ref(first)))
        await time.pass_by(BACKOFF)
        second = await lease_one(queue, worker_id="worker-2")
        held = await queue.get(first.task.id)

        again = await settle(queue, VERBS[name](ref(first)))

        assert again is None
        assert await queue.get(first.task.id) == held
        assert await settle(queue, Complete(ref=ref(second))) is None

    @pytest.mark.parametrize(("first", "second", "reason"), CONTRADICTIONS, ids=str)
    async def test_another_word_under_the_same_lease_is_refused(
        self, queue: TaskQueue, first: str, second: str, reason: LostReason
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        await settle(queue, VERBS[first](ref(leased)))
        settled = await queue.get(leased.task.id)

        answer = await settle(queue, VERBS[second](ref(leased)))

        assert lost(answer) is reason
        assert await queue.get(leased.task.id) == settled

    async def test_of_many_repeats_at_once_one_has_its_effect(self, queue: TaskQueue) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        answers = await asyncio.gather(*(settle(queue, Fail(ref=ref(leased))) for _ in range(16)))

        # A door may give up on one that others keep from its turn; it may then be repeated.
        assert None in answers
        assert all(answer is None or isinstance(answer, ContendedError) for answer in answers)
        assert (await queue.get(leased.task.id)).attempts == 1

    async def test_of_two_different_words_at_once_one_has_its_effect(
        self, queue: TaskQueue
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        completed, failed = await asyncio.gather(
            settle(queue, Complete(ref=ref(leased))),
            settle(queue, Fail(ref=ref(leased), retry=False)),
        )

        shown = await queue.get(leased.task.id)
        assert (completed is None) != (failed is None)
        assert shown.status == (Status.SUCCEEDED if completed is None else Status.FAILED)
        assert shown.attempts == 1


class LateContract(QueueFixtures):
    """A worker that lost its lease is told so, and changes nothing."""

    @every_verb
    async def test_a_word_after_the_end_of_the_lease_is_refused(
        self,
        queue: TaskQueue,
        maintenance: Maintenance,
        time: Time,
        verb: Callable[[LeaseRef], Settlement],
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)

        before_the_reaper = await settle(queue, verb(ref(leased)))
        await maintenance.reap()
        reaped = await queue.get(leased.task.id)
        after_the_reaper = await settle(queue, verb(ref(leased)))

        assert lost(before_the_reaper) is LostReason.LEASE_EXPIRED
        assert lost(after_the_reaper) is LostReason.LEASE_EXPIRED
        assert await queue.get(leased.task.id) == reaped

    @every_verb
    async def test_a_word_after_somebody_else_leased_the_task_is_refused(
        self,
        queue: TaskQueue,
        maintenance: Maintenance,
        time: Time,
        verb: Callable[[LeaseRef], Settlement],
    ) -> None:
        first, second = await _lost_and_leased_anew(queue, maintenance, time)

        answer = await settle(queue, verb(ref(first)))

        assert lost(answer) is LostReason.LEASE_SUPERSEDED
        assert await settle(queue, Complete(ref=ref(second))) is None

    @every_verb
    async def test_a_word_after_somebody_else_finished_the_task_is_refused(
        self,
        queue: TaskQueue,
        maintenance: Maintenance,
        time: Time,
        verb: Callable[[LeaseRef], Settlement],
    ) -> None:
        first, second = await _lost_and_leased_anew(queue, maintenance, time)
        await settle(queue, Complete(ref=ref(second), result='{"by": "the second"}'))
        finished = await queue.get(first.task.id)

        answer = await settle(queue, verb(ref(first)))

        assert lost(answer) is LostReason.TASK_FINISHED
        assert finished.result == '{"by": "the second"}'
        assert await queue.get(first.task.id) == finished

    async def test_a_task_given_up_for_a_lost_worker_stays_so_and_keeps_its_key(
        self, queue: TaskQueue, maintenance: Maintenance, time: Time
    ) -> None:
        new = attrs.evolve(QUICK, max_attempts=1, idempotency_key="k-1")
        task = await enqueue_one(queue, new)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)
        await maintenance.reap()
        [again] = await queue.enqueue([new])

        late = await settle(queue, Complete(ref=ref(leased)))

        assert isinstance(again, Enqueued)
        assert (again.created, again.task.id) == (False, task.id)
        assert lost(late) is LostReason.TASK_FINISHED
        assert (await queue.get(task.id)).status == Status.DEAD

    @every_verb
    async def test_a_word_on_a_task_called_off_meanwhile_is_refused(
        self,
        queue: TaskQueue,
        admin: TaskAdmin,
        maintenance: Maintenance,
        time: Time,
        verb: Callable[[LeaseRef], Settlement],
    ) -> None:
        task = await enqueue_one(queue)
        leased = await lease_one(queue, lease_duration=SECOND)
        await time.pass_by(SECOND)
        await maintenance.reap()
        await admin.cancel([task.id])
        cancelled = await queue.get(task.id)

        answer = await settle(queue, verb(ref(leased)))

        assert lost(answer) is LostReason.TASK_CANCELLED
        assert await queue.get(task.id) == cancelled

    async def test_a_word_on_a_task_given_back_and_called_off_is_refused(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        task = await enqueue_one(queue)
        leased = await lease_one(queue)
        await settle(queue, Release(ref=ref(leased)))
        await admin.cancel([task.id])

        assert lost(await settle(queue, Complete(ref=ref(leased)))) is LostReason.TASK_FINISHED
        assert await settle(queue, Release(ref=ref(leased))) is None

    @every_verb
    async def test_a_guessed_token_changes_nothing(
        self, queue: TaskQueue, verb: Callable[[LeaseRef], Settlement]
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)
        guessed = LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token.swapcase())

        answer = await settle(queue, verb(guessed))

        assert isinstance(answer, LeaseLostError)
        assert answer.task_id == leased.task.id
        assert await queue.get(leased.task.id) == leased.task

    @every_verb
    async def test_a_token_is_good_for_its_own_task_only(
        self, queue: TaskQueue, verb: Callable[[LeaseRef], Settlement]
    ) -> None:
        await enqueue_one(queue)
        await enqueue_one(queue)
        one, other = await lease_one(queue), await lease_one(queue)
        crossed = LeaseRef(task_id=one.task.id, lease_token=other.lease_token)

        answer = await settle(queue, verb(crossed))

        assert lost(answer) is LostReason.LEASE_SUPERSEDED
        assert await queue.get(one.task.id) == one.task
        assert await queue.get(other.task.id) == other.task


async def _lost_and_leased_anew(
    queue: TaskQueue, maintenance: Maintenance, time: Time
) -> tuple[LeasedTask, LeasedTask]:
    """Return the lease that was lost and the one that came after, of one task."""
    await enqueue_one(queue)
    first = await lease_one(queue, lease_duration=SECOND)
    await time.pass_by(SECOND)
    await maintenance.reap()
    await time.pass_by(BACKOFF)
    return first, await lease_one(queue, worker_id="worker-2")
