"""What operators do to tasks: cancel, requeue, delete."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Final

import attrs
import pytest

from ...domain.errors import (
    InvalidArgumentError,
    LostReason,
    TaskFinishedError,
    TaskNotDeadError,
    TaskNotFinishedError,
    TaskNotFoundError,
    TaskQueueError,
)
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, LeaseRef, Release
from ...domain.task import Status, TaskError
from ...domain.views import TaskView
from ..builders import DAY, MICROSECOND, SECOND
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

_UNKNOWN: Final = "01890000-0000-7000-8000-000000000000"


async def queued(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that waits."""
    return await enqueue_one(queue)


async def leased(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that a worker holds."""
    await enqueue_one(queue)
    return (await lease_one(queue)).task


async def succeeded(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that was completed."""
    await enqueue_one(queue)
    held = await lease_one(queue)
    await settle(queue, Complete(ref=ref(held), result='{"n": 1}'))
    return await queue.get(held.task.id)


async def failed(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that was given up by its worker."""
    await enqueue_one(queue)
    held = await lease_one(queue)
    await settle(queue, Fail(ref=ref(held), error=TaskError(type="E"), retry=False))
    return await queue.get(held.task.id)


async def dead(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task whose attempts are used up."""
    await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=1))
    held = await lease_one(queue)
    await settle(queue, Fail(ref=ref(held), error=TaskError(type="E")))
    return await queue.get(held.task.id)


async def cancelled(queue: TaskQueue, admin: TaskAdmin) -> TaskView:
    """Make a task that was called off."""
    task = await enqueue_one(queue)
    assert await admin.cancel([task.id]) == [None]
    return await queue.get(task.id)


Make = Callable[[TaskQueue, TaskAdmin], Awaitable[TaskView]]


def made(*makes: Make) -> pytest.MarkDecorator:
    """Run a test with a task made in each of these ways."""
    return pytest.mark.parametrize("make", makes, ids=lambda make: make.__name__)


class CancelContract(QueueFixtures):
    """A queued task is called off at once, a leased one by a word to its worker."""

    async def test_a_cancelled_task_is_over(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time
    ) -> None:
        task = await enqueue_one(queue)
        before = time.now()

        answers = await admin.cancel([task.id])

        shown = await queue.get(task.id)
        assert answers == [None]
        assert shown.finished_at is not None
        assert before <= shown.finished_at <= time.now()
        assert shown == attrs.evolve(
            task,
            status=Status.CANCELLED,
            updated_at=shown.finished_at,
            finished_at=shown.finished_at,
        )
        assert await lease(queue) == []

    async def test_a_leased_task_that_is_called_off_stays_leased(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        task = await leased(queue, admin)

        answers = await admin.cancel([task.id])

        shown = await queue.get(task.id)
        assert answers == [None]
        assert shown == attrs.evolve(task, updated_at=shown.updated_at)

    async def test_a_completion_is_faster_than_the_word(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await admin.cancel([held.task.id])

        assert await settle(queue, Complete(ref=ref(held))) is None

        assert (await queue.get(held.task.id)).status == Status.SUCCEEDED

    @pytest.mark.parametrize(
        "fail",
        [
            lambda lease: Fail(ref=lease),
            lambda lease: Fail(ref=lease, retry=False),
            lambda lease: Fail(ref=lease, retry_after=SECOND),
        ],
        ids=["to be tried again", "for good", "for later"],
    )
    async def test_a_failure_ends_a_task_that_was_called_off(
        self, queue: TaskQueue, admin: TaskAdmin, fail: Callable[[LeaseRef], Fail]
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await admin.cancel([held.task.id])

        await settle(queue, fail(ref(held)))

        shown = await queue.get(held.task.id)
        assert (shown.status, shown.attempts) == (Status.CANCELLED, 1)
        assert len(shown.errors) == 1

    async def test_a_release_ends_a_task_that_was_called_off(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await admin.cancel([held.task.id])

        await settle(queue, Release(ref=ref(held)))

        shown = await queue.get(held.task.id)
        assert (shown.status, shown.attempts) == (Status.CANCELLED, 0)
        assert shown.finished_at is not None

    async def test_an_expiry_ends_a_task_that_was_called_off(
        self, queue: TaskQueue, admin: TaskAdmin, maintenance: Maintenance, time: Time
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue, lease_duration=SECOND)
        await admin.cancel([held.task.id])
        await time.pass_by(SECOND)

        await maintenance.reap()

        shown = await queue.get(held.task.id)
        assert (shown.status, shown.attempts) == (Status.CANCELLED, 1)

    @made(leased, cancelled)
    async def test_a_task_may_be_called_off_twice(
        self, queue: TaskQueue, admin: TaskAdmin, make: Make
    ) -> None:
        task = await make(queue, admin)
        await admin.cancel([task.id])
        once = await queue.get(task.id)

        again = await admin.cancel([task.id])

        assert again == [None]
        assert await queue.get(task.id) == once

    @made(succeeded, failed, dead)
    async def test_a_task_that_has_ended_cannot_be_called_off(
        self, queue: TaskQueue, admin: TaskAdmin, make: Make
    ) -> None:
        task = await make(queue, admin)

        [answer] = await admin.cancel([task.id])

        assert isinstance(answer, TaskFinishedError)
        assert answer.task_id == task.id
        assert await queue.get(task.id) == task


class RequeueContract(QueueFixtures):
    """A task that was given up starts anew when an operator says so."""

    @made(failed, dead, cancelled)
    async def test_a_requeued_task_starts_anew(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time, make: Make
    ) -> None:
        task = await make(queue, admin)
        before = time.now()

        answers = await admin.requeue([task.id])

        shown = await queue.get(task.id)
        assert answers == [None]
        assert before <= shown.run_after <= time.now()
        assert shown == attrs.evolve(
            task,
            status=Status.QUEUED,
            attempts=0,
            run_after=shown.run_after,
            updated_at=shown.run_after,
            finished_at=None,
        )
        assert (await lease_one(queue)).task.id == task.id

    async def test_a_requeued_task_has_all_its_releases_again(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        task = await enqueue_one(queue)
        for _ in range(10):
            await settle(queue, Release(ref=ref(await lease_one(queue))))
        await admin.cancel([task.id])
        await admin.requeue([task.id])

        await settle(queue, Release(ref=ref(await lease_one(queue))))

        assert (await queue.get(task.id)).attempts == 0

    @made(queued, leased, succeeded)
    async def test_a_task_that_was_not_given_up_cannot_be_requeued(
        self, queue: TaskQueue, admin: TaskAdmin, make: Make
    ) -> None:
        task = await make(queue, admin)

        [answer] = await admin.requeue([task.id])

        assert isinstance(answer, TaskNotDeadError)
        assert answer.task_id == task.id
        assert await queue.get(task.id) == task

    async def test_a_worker_of_the_cycle_before_is_told_that_its_task_went_on(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await settle(queue, Fail(ref=ref(held), retry=False))
        await admin.requeue([held.task.id])

        late = await settle(queue, Complete(ref=ref(held)))

        assert lost(late) is LostReason.LEASE_SUPERSEDED


class DeleteTasksContract(QueueFixtures):
    """A task that has ended can be removed."""

    @made(succeeded, failed, dead, cancelled)
    async def test_a_deleted_task_is_not_found(
        self, queue: TaskQueue, admin: TaskAdmin, make: Make
    ) -> None:
        task = await make(queue, admin)

        answers = await admin.delete([task.id])

        assert answers == [None]
        with pytest.raises(TaskNotFoundError):
            await queue.get(task.id)

    @made(queued, leased)
    async def test_a_task_that_has_not_ended_stays(
        self, queue: TaskQueue, admin: TaskAdmin, make: Make
    ) -> None:
        task = await make(queue, admin)

        [answer] = await admin.delete([task.id])

        assert isinstance(answer, TaskNotFinishedError)
        assert answer.task_id == task.id
        assert await queue.get(task.id) == task

    async def test_a_late_worker_is_told_that_its_task_is_gone(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await settle(queue, Fail(ref=ref(held), retry=False))
        await admin.delete([held.task.id])

        late = await settle(queue, Complete(ref=ref(held)))

        assert isinstance(late, TaskNotFoundError)


Ask = Callable[[TaskAdmin, list[str]], Awaitable[list[TaskQueueError | None]]]

ASKS: Final[dict[str, Ask]] = {
    "cancel": lambda admin, ids: admin.cancel(ids),
    "requeue": lambda admin, ids: admin.requeue(ids),
    "delete": lambda admin, ids: admin.delete(ids),
}


class OperatorBatchContract(QueueFixtures):
    """What operators ask for is answered id by id, in their order."""

    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
    async def test_a_mixed_batch_of_ids_is_answered_in_its_order(
        self, queue: TaskQueue, admin: TaskAdmin, ask: Ask
    ) -> None:
        one, other = await cancelled(queue, admin), await cancelled(queue, admin)
        done = await succeeded(queue, admin)
        asked = [_UNKNOWN, other.id, "?", one.id.upper()]

        answers = await ask(admin, asked)

        assert isinstance(answers[0], TaskNotFoundError)
        assert answers[0].task_id == _UNKNOWN
        assert faults(answers[2]) == ["task_id"]
        assert [answers[1], answers[3]] == [None, None]
        assert await queue.get(done.id) == done

    @pytest.mark.parametrize("name", ["cancel", "delete"])
    async def test_an_id_twice_in_a_batch_is_done_once(
        self, queue: TaskQueue, admin: TaskAdmin, name: str
    ) -> None:
        task = await cancelled(queue, admin)

        answers = await ASKS[name](admin, [task.id, task.id])

        assert answers == [None, None]

    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
    async def test_no_ids_are_answered_with_nothing(self, admin: TaskAdmin, ask: Ask) -> None:
        assert await ask(admin, []) == []

    @pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
    async def test_more_than_a_thousand_ids_are_refused_whole(
        self, admin: TaskAdmin, ask: Ask
    ) -> None:
        with pytest.raises(InvalidArgumentError) as refusal:
            await ask(admin, [_UNKNOWN] * 1001)

        assert faults(refusal.value) == ["task_ids"]

    async def test_a_thousand_are_called_off_requeued_and_deleted_at_once(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        ids = [task.id for task in await enqueue(queue, *[QUICK] * 1000)]

        answers = [
            await admin.cancel(ids),
            await admin.requeue(ids),
            await admin.cancel(ids),
            await admin.delete(ids),
        ]

        assert answers == [[None] * 1000] * 4


class RetentionContract(QueueFixtures):
    """What ended long ago is removed by itself."""

    @pytest.mark.parametrize(
        ("make", "kept"),
        [(succeeded, 3 * DAY), (cancelled, 3 * DAY), (failed, 30 * DAY), (dead, 30 * DAY)],
        ids=["succeeded", "cancelled", "failed", "dead"],
    )
    async def test_a_task_is_kept_for_its_time_and_then_removed(
        self,
        queue: TaskQueue,
        admin: TaskAdmin,
        maintenance: Maintenance,
        time: Time,
        make: Make,
        kept: timedelta,
    ) -> None:
        self.needs_manual_time()
        task = await make(queue, admin)

        await time.pass_by(kept)
        at_its_time = await maintenance.prune()
        await time.pass_by(MICROSECOND)
        after_its_time = await maintenance.prune()

        assert (at_its_time, after_its_time) == (0, 1)
        with pytest.raises(TaskNotFoundError):
            await queue.get(task.id)

    @made(queued, leased)
    async def test_a_task_that_has_not_ended_is_never_removed(
        self,
        queue: TaskQueue,
        admin: TaskAdmin,
        maintenance: Maintenance,
        time: Time,
        make: Make,
    ) -> None:
        self.needs_manual_time()
        task = await make(queue, admin)
        await time.pass_by(1000 * DAY)

        pruned = await maintenance.prune()

        assert pruned == 0
        assert await queue.get(task.id) == task
