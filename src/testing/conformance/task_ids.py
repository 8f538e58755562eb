"""Task ids that producers make, so that an enqueue may be repeated."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from ...domain.errors import TaskIdReusedError
from ...domain.ports import TaskQueue
from ...domain.requests import Complete, NewTask
from ...domain.views import Enqueued
from .queue_fixtures import QUICK, QueueFixtures, enqueue_one, faults, lease, lease_one, ref, settle

_ID = "01890a5d-ac96-774b-bcce-b302099a8057"


class TaskIdContract(QueueFixtures):
    """`enqueue` stores a task once under the id that its producer gave it."""

    async def test_a_task_gets_the_id_that_its_producer_made(self, queue: TaskQueue) -> None:
        made = await enqueue_one(queue, _named(_ID.upper()))

        assert made.id == _ID
        assert (await queue.get(_ID)).id == _ID

    @pytest.mark.parametrize("key", ["", "k-1"], ids=["no key", "with a key"])
    async def test_a_repeat_under_its_id_makes_no_second_task(
        self, queue: TaskQueue, key: str
    ) -> None:
        new = attrs.evolve(_named(), idempotency_key=key)

        answers = await asyncio.gather(*(queue.enqueue([new]) for _ in range(16)))

        for [answer] in answers:
            assert isinstance(answer, Enqueued)
            assert (answer.task.id, answer.created) == (_ID, True)
        assert len(await lease(queue, max_tasks=10)) == 1

    async def test_a_repeat_does_not_start_anew_what_has_ended(self, queue: TaskQueue) -> None:
        await enqueue_one(queue, _named())
        await settle(queue, Complete(ref=ref(await lease_one(queue))))

        [repeat] = await queue.enqueue([_named()])

        assert isinstance(repeat, Enqueued)
        assert repeat.created
        assert await lease(queue, max_tasks=10) == []

    @pytest.mark.parametrize(
        "other",
        [
            NewTask(type="send", payload='{"a": 2}'),
            NewTask(type="resize"),
            NewTask(type="send", queue="another"),
        ],
        ids=["another payload", "another type", "another queue"],
    )
    async def test_an_id_is_not_given_to_other_content(
        self, queue: TaskQueue, other: NewTask
    ) -> None:
        first = NewTask(type="send", task_id=_ID)
        second = attrs.evolve(other, task_id=_ID)

        together = await queue.enqueue([first, second])
        [alone] = await queue.enqueue([second])

        assert isinstance(together[0], Enqueued)
        for answer in (together[1], alone):
            assert isinstance(answer, TaskIdReusedError)
            assert answer.task_id == _ID

    @pytest.mark.parametrize(
        "no_id",
        ["7", "01890a5d-ac96-474b-bcce-b302099a8057", "01890a5d-ac96-774b-0cce-b302099a8057"],
        ids=["no UUID", "version 4", "another variant"],
    )
    async def test_an_id_that_is_no_uuid_of_version_seven_is_refused(
        self, queue: TaskQueue, no_id: str
    ) -> None:
        [answer] = await queue.enqueue([_named(no_id)])

        assert faults(answer) == ["task_id"]


def _named(task_id: str = _ID) -> NewTask:
    return attrs.evolve(QUICK, task_id=task_id)
