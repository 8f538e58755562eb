"""Counting tasks."""

from __future__ import annotations

from datetime import datetime

import attrs
import pytest

from ...domain.ids import QueueName
from ...domain.ports import TaskRepository
from ...domain.storing import QueueDepths
from ...domain.task import Dead, Status
from ...domain.views import Depth
from ..builders import (
    DAY,
    EMAILS,
    HOUR,
    IMAGES,
    MICROSECOND,
    MINUTE,
    NOON,
    RESIZE,
    a_task,
    a_task_id,
    leased_until,
)
from .add import HOLDERS


class StatsContract:
    """`stats` tells how full each queue is."""

    async def test_nothing_is_told_of_an_empty_storage(self, tasks: TaskRepository) -> None:
        stats = await tasks.stats(now=NOON)

        assert stats == []

    async def test_each_status_of_each_queue_is_counted(self, tasks: TaskRepository) -> None:
        await tasks.add(
            [
                a_task(queue=IMAGES, state=state, run_after=NOON + HOUR)
                for number, state in enumerate(HOLDERS.values(), start=1)
                for _ in range(number)
            ]
        )
        await tasks.add([a_task(queue=EMAILS, state=Dead(at=NOON))])

        stats = await tasks.stats(now=NOON)

        assert stats == [
            QueueDepths(
                queue=EMAILS,
                depths={Status.DEAD: Depth(count=1, exact=True)},
                oldest_due_since=None,
            ),
            QueueDepths(
                queue=IMAGES,
                depths={
                    Status(name): Depth(count=number, exact=True)
                    for number, name in enumerate(HOLDERS, start=1)
                },
                oldest_due_since=None,
            ),
        ]

    async def test_queues_are_told_by_name(self, tasks: TaskRepository) -> None:
        names = [QueueName(name) for name in ("b", "B", "a.10", "a-1", "a:1", "a_1", "Z", "9")]
        await tasks.add([a_task(queue=name) for name in names])

        stats = await tasks.stats(now=NOON)

        assert [queue.queue for queue in stats] == sorted(names)

    async def test_the_task_due_longest_is_told(self, tasks: TaskRepository) -> None:
        await tasks.add(
            [
                a_task(run_after=NOON - MINUTE),
                a_task(run_after=NOON - HOUR, priority=3, type=RESIZE),
                a_task(run_after=NOON - DAY, state=leased_until(NOON + HOUR)),
                a_task(run_after=NOON - DAY, state=Dead(at=NOON)),
                a_task(run_after=NOON - DAY, queue=IMAGES),
            ]
        )

        stats = await tasks.stats(now=NOON)

        assert [queue.oldest_due_since for queue in stats] == [NOON - HOUR, NOON - DAY]

    @pytest.mark.parametrize("longest", [0, 1, 2, 3])
    async def test_the_task_due_longest_is_told_whatever_its_priority(
        self, tasks: TaskRepository, longest: int
    ) -> None:
        await tasks.add(
            [
                a_task(priority=80 * place, run_after=NOON - (4 - (place - longest) % 4) * HOUR)
                for place in range(4)
            ]
        )

        [queue] = await tasks.stats(now=NOON)

        assert queue.oldest_due_since == NOON - 4 * HOUR

    @pytest.mark.parametrize(
        ("run_after", "since"),
        [
            (NOON - MICROSECOND, NOON - MICROSECOND),
            (NOON, NOON),
            (NOON + MICROSECOND, None),
        ],
        ids=["due since a microsecond", "due from now on", "due in a microsecond"],
    )
    async def test_what_is_not_due_yet_is_not_the_oldest(
        self, tasks: TaskRepository, run_after: datetime, since: datetime | None
    ) -> None:
        await tasks.add([a_task(run_after=run_after)])

        [queue] = await tasks.stats(now=NOON)

        assert queue.oldest_due_since == since
        assert queue.depths == {Status.QUEUED: Depth(count=1, exact=True)}

    async def test_depths_are_exact_up_to_ten_thousand(self, tasks: TaskRepository) -> None:
        await _fill(tasks, 10_000)
        [full] = await tasks.stats(now=NOON)

        await tasks.add([a_task(), a_task(state=Dead(at=NOON))])

        [over] = await tasks.stats(now=NOON)
        assert full.depths == {Status.QUEUED: Depth(count=10_000, exact=True)}
        assert over.depths == {
            Status.QUEUED: Depth(count=10_000, exact=False),
            Status.DEAD: Depth(count=1, exact=True),
        }


async def _fill(tasks: TaskRepository, number: int) -> None:
    one = a_task()
    for _ in range(0, number, 1000):
        await tasks.add([attrs.evolve(one, id=a_task_id()) for _ in range(1000)])
