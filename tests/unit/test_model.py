from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import attrs
import pytest
from hypothesis import Phase, settings

from leaseq.adapters.memory import MemoryQueueRepository, MemoryStorage, MemoryTaskRepository
from leaseq.domain.errors import TaskQueueError
from leaseq.domain.ids import QueueName
from leaseq.domain.storing import Change, Demand, Found, PruneRule, Replaced
from leaseq.testing import DAY, MICROSECOND
from leaseq.testing.model import ModelConformance, play

# The same courses each time, and no search for a shorter one that also fails.
UNTIL_FOUND = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
)


class TestMemoryByModel(ModelConformance):
    settings = settings(max_examples=10, stateful_step_count=30, deadline=None)

    @pytest.fixture
    def storage(self) -> MemoryStorage:
        return MemoryStorage()


class GoesOnWhenPaused(MemoryQueueRepository):
    def paused(self, name: QueueName) -> bool:  # noqa: ARG002
        return False


class LeasesTooSoon(MemoryTaskRepository):
    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        return await super().claim(demand, now=now + MICROSECOND)


class LetsTheLastWriterWin(MemoryTaskRepository):
    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        found = await self.load([change.old.id for change in changes], with_payload=False)
        stored = {task.id: task for task in found.tasks}
        return await super().replace(
            [attrs.evolve(change, old=stored.get(change.old.id, change.old)) for change in changes]
        )


class PrunesTooMuch(MemoryTaskRepository):
    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        sooner = [attrs.evolve(r, finished_before=r.finished_before + DAY) for r in rules]
        return await super().prune(sooner, limit=limit)


async def test_a_storage_that_leases_from_paused_queues_is_found() -> None:
    storage = MemoryStorage()
    storage.tasks = MemoryTaskRepository(GoesOnWhenPaused())

    await assert_found(storage)


@pytest.mark.parametrize("fault", [LeasesTooSoon, LetsTheLastWriterWin, PrunesTooMuch])
async def test_a_storage_with_a_fault_is_found(fault: type[MemoryTaskRepository]) -> None:
    storage = MemoryStorage()
    storage.tasks = fault(storage.queues)

    await assert_found(storage)


async def assert_found(storage: MemoryStorage) -> None:
    with pytest.raises(AssertionError):
        await play({"sound": MemoryStorage(), "faulty": storage}, settings=UNTIL_FOUND)
