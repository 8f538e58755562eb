"""Calling tasks off."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from ...domain.errors import (
    TaskFinishedError,
)
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, LeaseRef, Release
from ...domain.task import Status
from ..builders import SECOND
from ..fakes import Time
from .given_tasks import Make, cancelled, dead, failed, leased, made, succeeded
from .queue_fixtures import (
    QueueFixtures,
    enqueue_one,
    lease,
    lease_one,
    ref,
    settle,
)


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
