"""A memory storage whose claims are as slow as a test wants."""

from __future__ import annotations

import asyncio
from datetime import datetime

from leaseq.adapters.memory import MemoryStorage, MemoryTaskRepository
from leaseq.domain.storing import Demand, Found


class SlowTasks(MemoryTaskRepository):
    """Says when tasks have been claimed, and answers the claim when it is told to."""

    def __init__(self, storage: MemoryStorage) -> None:
        super().__init__(storage.queues)
        self.claimed = asyncio.Event()
        self.answer = asyncio.Event()

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        found = await super().claim(demand, now=now)
        if found.tasks and not self.answer.is_set():
            self.claimed.set()
            await self.answer.wait()
        return found


class SlowStorage(MemoryStorage):
    def __init__(self) -> None:
        super().__init__()
        self.slow_tasks = SlowTasks(self)
        self.tasks = self.slow_tasks


class BrokenTasks(MemoryTaskRepository):
    """Fails as nobody expected."""

    async def load(self, *_: object, **__: object) -> Found:
        raise ZeroDivisionError("a secret of the storage")


class BrokenStorage(MemoryStorage):
    def __init__(self) -> None:
        super().__init__()
        self.tasks = BrokenTasks(self.queues)
