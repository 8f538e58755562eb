"""Tasks that ended: started anew, or removed."""

from __future__ import annotations

from datetime import timedelta

import attrs
import pytest

from ...domain.errors import (
    LostReason,
    TaskNotDeadError,
    TaskNotFinishedError,
    TaskNotFoundError,
)
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, Release
from ...domain.task import Status
from ..builders import DAY, MICROSECOND, SECOND
from ..fakes import Time
from .given_tasks import Make, cancelled, dead, failed, leased, made, queued, succeeded
from .queue_fixtures import (
    QueueFixtures,
    enqueue_one,
    lease_one,
    lost,
    ref,
    settle,
)


class RequeueContract(QueueFixtures):
    """A task that was given up starts anew when an operator says so."""

    @made(failed, dead, cancelled)
    async def test_a_requeued_task_starts_anew(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time, make: Make
    ) -> None:
        task = await make(queue, admin)
        await time.pass_by(SECOND / 100)
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
