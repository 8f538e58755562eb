from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from leaseq.adapters.grpc.shelter import NoShelter, TaskShelter
from leaseq.domain.errors import StorageUnavailableError

LONG = timedelta(seconds=30)


class Work:
    """Work that ends when the test says so, and where its result went."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.go_on = asyncio.Event()
        self.hastened = False
        self.abandoned: list[str] = []

    async def do(self) -> str:
        self.begun.set()
        await self.go_on.wait()
        return "done"

    async def hasten(self) -> bool:
        self.hastened = True
        return False

    async def take_back(self, result: str) -> None:
        self.abandoned.append(result)


async def test_work_whose_caller_stays_is_handed_to_the_caller() -> None:
    work = Work()
    work.go_on.set()

    result = await TaskShelter(patience=LONG).finish(
        work.do(), hasten=work.hasten, if_abandoned=work.take_back
    )

    assert result == "done"
    assert work.abandoned == []
    assert not work.hastened


async def test_a_cancelled_caller_is_let_go_and_the_work_is_finished() -> None:
    work, shelter = Work(), TaskShelter(patience=LONG)
    caller = asyncio.create_task(
        shelter.finish(work.do(), hasten=work.hasten, if_abandoned=work.take_back)
    )
    await work.begun.wait()

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    work.go_on.set()
    await shelter.empty()

    assert work.abandoned == ["done"]


async def test_a_caller_cancelled_just_after_the_work_was_done_gets_nothing() -> None:
    async def quick() -> str:
        asyncio.get_running_loop().call_soon(caller.cancel)
        return "done"

    work, shelter = Work(), TaskShelter(patience=LONG)
    caller = asyncio.create_task(
        shelter.finish(quick(), hasten=work.hasten, if_abandoned=work.take_back)
    )

    with pytest.raises(asyncio.CancelledError):
        await caller
    await shelter.empty()

    assert work.abandoned == ["done"]
    assert not work.hastened


async def test_an_error_of_the_work_is_its_callers() -> None:
    async def fail() -> str:
        raise StorageUnavailableError("away")

    work = Work()

    with pytest.raises(StorageUnavailableError):
        await TaskShelter(patience=LONG).finish(
            fail(), hasten=work.hasten, if_abandoned=work.take_back
        )


async def test_abandoned_work_is_brought_to_its_end() -> None:
    words: list[str] = []

    async def hasten() -> bool:
        words.append("hurry")
        # Whoever is to hear it is not yet there for the first.
        if len(words) == 2:
            work.go_on.set()
        return True

    work, shelter = Work(), TaskShelter(patience=timedelta(0))
    caller = asyncio.create_task(
        shelter.finish(work.do(), hasten=hasten, if_abandoned=work.take_back)
    )
    await work.begun.wait()

    caller.cancel()
    await asyncio.wait([caller])
    await shelter.empty()

    assert work.abandoned == ["done"]


async def test_patience_with_abandoned_work_ends() -> None:
    work, shelter = Work(), TaskShelter(patience=timedelta(0))
    caller = asyncio.create_task(
        shelter.finish(work.do(), hasten=work.hasten, if_abandoned=work.take_back)
    )
    await work.begun.wait()

    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    await shelter.empty()

    assert work.abandoned == []


async def test_trouble_with_abandoned_work_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(_: str) -> None:
        raise StorageUnavailableError("the storage is away")

    work, shelter = Work(), TaskShelter(patience=LONG)
    caller = asyncio.create_task(shelter.finish(work.do(), hasten=work.hasten, if_abandoned=refuse))
    await work.begun.wait()

    caller.cancel()
    work.go_on.set()
    await asyncio.wait([caller])
    await shelter.empty()

    assert "the storage is away" in caplog.text


async def test_callers_that_cannot_be_cancelled_need_no_shelter() -> None:
    work = Work()
    work.go_on.set()

    result = await NoShelter().finish(work.do(), hasten=work.hasten, if_abandoned=work.take_back)

    assert result == "done"
