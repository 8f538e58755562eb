"""Claiming at once: each task goes to one caller."""

from __future__ import annotations

import asyncio

from ...domain.ports import TaskRepository
from ...domain.storing import Found
from ..builders import (
    NOON,
    a_demand,
    a_task,
    some_grants,
)


class ClaimRaceContract:
    """Of any number of concurrent claims, one gets a given task."""

    async def test_fifty_claims_of_twenty_tasks_get_twenty_different(
        self, tasks: TaskRepository
    ) -> None:
        stored = [a_task() for _ in range(20)]
        await tasks.add(stored)

        answers = await asyncio.gather(
            *(tasks.claim(a_demand(grants=[grant]), now=NOON) for grant in some_grants(50))
        )

        claimed = [task.id for found in answers for task in found.tasks]
        assert sorted(claimed) == sorted(task.id for task in stored)

    async def test_concurrent_claims_of_many_share_the_tasks(self, tasks: TaskRepository) -> None:
        stored = [a_task() for _ in range(100)]
        await tasks.add(stored)
        grants = some_grants(160)

        answers = await asyncio.gather(
            *(
                tasks.claim(a_demand(grants=grants[first : first + 20]), now=NOON)
                for first in range(0, 160, 20)
            )
        )

        leased = {task.id: task for found in answers for task in found.tasks}
        kept = await tasks.load([task.id for task in stored], with_payload=True)
        assert sum(len(found.tasks) for found in answers) == 100
        assert leased == {task.id: task for task in kept.tasks}

    async def test_claims_beside_adds_lose_nothing(self, tasks: TaskRepository) -> None:
        stored = [a_task() for _ in range(40)]

        answers = await asyncio.gather(
            *(tasks.add([task]) for task in stored),
            *(tasks.claim(a_demand(grants=[grant]), now=NOON) for grant in some_grants(40)),
        )
        rest = await tasks.claim(a_demand(grants=some_grants(40)), now=NOON)

        claimed = [
            task.id
            for found in (*answers, rest)
            if isinstance(found, Found)
            for task in found.tasks
        ]
        assert sorted(claimed) == sorted(task.id for task in stored)
