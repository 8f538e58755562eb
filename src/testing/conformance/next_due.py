"""Looking ahead."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import pytest

from ...domain.ids import QueueName
from ...domain.ports import TaskRepository
from ...domain.task import Queued, State
from ..builders import (
    DAY,
    EMAILS,
    HOUR,
    IMAGES,
    MICROSECOND,
    MINUTE,
    NOON,
    RESIZE,
    SECOND,
    SEND,
    a_task,
)
from .add import HOLDERS

NEXT_DUE_AFTER_NOON: Final[dict[str, tuple[list[datetime], datetime | None]]] = {
    "nothing stored": ([], None),
    "only due since before": ([NOON - MICROSECOND], None),
    "only due from now on": ([NOON], None),
    "due in a microsecond": ([NOON + MICROSECOND], NOON + MICROSECOND),
    "the earliest of those to come": (
        [NOON + DAY, NOON, NOON + SECOND, NOON + HOUR, NOON - DAY],
        NOON + SECOND,
    ),
}


class NextDueContract:
    """`next_due` tells when a task becomes due that is not due yet."""

    @pytest.mark.parametrize(
        ("moments", "expected"), NEXT_DUE_AFTER_NOON.values(), ids=NEXT_DUE_AFTER_NOON.keys()
    )
    async def test_the_earliest_moment_after_now_is_told(
        self, tasks: TaskRepository, moments: list[datetime], expected: datetime | None
    ) -> None:
        await tasks.add([a_task(run_after=moment) for moment in moments])

        told = await tasks.next_due([EMAILS], [], now=NOON)

        assert told == expected

    async def test_it_is_the_earliest_of_all_the_queues(self, tasks: TaskRepository) -> None:
        await tasks.add(
            [
                a_task(queue=EMAILS, run_after=NOON + 3 * SECOND),
                a_task(queue=IMAGES, run_after=NOON + 2 * SECOND),
                a_task(queue=QueueName("third"), run_after=NOON + SECOND),
            ]
        )

        told = [
            await tasks.next_due(queues, [SEND], now=NOON)
            for queues in ([EMAILS, IMAGES], [IMAGES, EMAILS], [EMAILS], [QueueName("none")])
        ]

        assert told == [NOON + 2 * SECOND, NOON + 2 * SECOND, NOON + 3 * SECOND, None]

    @pytest.mark.parametrize("first", [0, 1, 2, 3])
    async def test_it_is_the_earliest_of_all_priorities(
        self, tasks: TaskRepository, first: int
    ) -> None:
        await tasks.add(
            [
                a_task(priority=80 * place, run_after=NOON + (1 + (place - first) % 4) * SECOND)
                for place in range(4)
            ]
        )

        told = await tasks.next_due([EMAILS], [], now=NOON)

        assert told == NOON + SECOND

    async def test_a_task_of_another_type_never_makes_it_later(self, tasks: TaskRepository) -> None:
        await tasks.add(
            [
                a_task(type=RESIZE, run_after=NOON + SECOND),
                a_task(type=SEND, run_after=NOON + MINUTE),
            ]
        )

        told = await tasks.next_due([EMAILS], [SEND], now=NOON)

        # Types may be ignored: looking too early is allowed, looking too late is not.
        assert told in {NOON + SECOND, NOON + MINUTE}

    @pytest.mark.parametrize(
        "state",
        [state for state in HOLDERS.values() if not isinstance(state, Queued)],
        ids=[name for name in HOLDERS if name != "queued"],
    )
    async def test_tasks_that_do_not_wait_are_passed_over(
        self, tasks: TaskRepository, state: State
    ) -> None:
        await tasks.add([a_task(state=state, run_after=NOON + SECOND)])

        told = await tasks.next_due([EMAILS], [], now=NOON)

        assert told is None
