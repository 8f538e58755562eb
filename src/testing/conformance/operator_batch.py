"""Operators ask for many tasks at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import pytest

from ...domain.errors import (
    InvalidArgumentError,
    TaskNotFoundError,
    TaskQueueError,
)
from ...domain.ports import TaskAdmin, TaskQueue
from .given_tasks import cancelled, succeeded
from .queue_fixtures import (
    QUICK,
    QueueFixtures,
    enqueue,
    faults,
)

_UNKNOWN: Final = "01890000-0000-7000-8000-000000000000"

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
