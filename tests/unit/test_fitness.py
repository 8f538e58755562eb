from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import attrs
import pytest

from leaseq.adapters.http.health import Check, readiness
from leaseq.domain.errors import StorageUnavailableError
from leaseq.entrypoints.fitness import Fitness
from leaseq.entrypoints.loops import LoopReport

LATE = LoopReport(
    name="reaper", age=timedelta(seconds=40), stale_after=timedelta(seconds=30), fault="is late"
)


@attrs.define
class World:
    """A storage, loops and time, as a test wants them."""

    time: float = 0.0
    asked: int = 0
    error: Exception | None = None
    slow: bool = False
    loops: list[LoopReport] = attrs.field(factory=list)
    fitness: Fitness = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.fitness = Fitness(
            loops=lambda: self.loops, query=self.query, monotonic=lambda: self.time
        )

    async def query(self) -> None:
        self.asked += 1
        if self.slow:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    async def failed(self) -> list[str]:
        document = readiness(await self.fitness.checks())
        assert document["ready"] == (not document["failed"])
        return list(document["failed"])


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    monkeypatch.setattr("leaseq.entrypoints.fitness._PATIENCE", timedelta(milliseconds=1))
    made = World()
    yield made
    await made.fitness.close()


async def test_a_storage_that_answered_just_now_is_not_asked_again(world: World) -> None:
    world.time = 0.9
    assert await world.failed() == []
    assert world.asked == 0

    world.time = 1.1
    assert await world.failed() == []
    assert await world.failed() == []
    assert world.asked == 1


async def test_a_storage_that_is_away_fails_at_once_and_until_it_is_back(world: World) -> None:
    world.time, world.error = 2, StorageUnavailableError("no route")
    assert await world.failed() == ["storage"]

    world.error = None
    assert await world.failed() == []


async def test_a_slow_storage_fails_once_its_last_answer_is_old(world: World) -> None:
    world.time, world.slow = 10, True
    assert await world.failed() == []

    world.time = 10.1
    assert await world.failed() == ["storage"]
    assert world.asked == 1


async def test_however_many_want_to_know_one_asks(world: World) -> None:
    world.time = 2

    await asyncio.gather(*(world.failed() for _ in range(50)))

    assert world.asked == 1


async def test_an_unexpected_failure_is_a_fault(world: World) -> None:
    world.time, world.error = 2, ZeroDivisionError("a secret")

    checks = await world.fitness.checks()

    faults = [check.fault for check in checks if check.name == "storage"]
    assert faults == ["the storage failed: ZeroDivisionError"]


async def test_a_late_loop_and_a_stop_are_told_by_name(world: World) -> None:
    world.loops = [LATE]
    assert await world.failed() == ["reaper"]

    world.fitness.stopping()
    assert await world.failed() == ["stopping", "reaper"]


def test_readiness_tells_ages_in_seconds() -> None:
    check = Check(name="x", age=timedelta(milliseconds=1500), limit=timedelta(minutes=1))

    document = readiness([check])

    assert document["checks"] == [
        {"name": "x", "ok": True, "fault": None, "age_seconds": 1.5, "limit_seconds": 60.0}
    ]
