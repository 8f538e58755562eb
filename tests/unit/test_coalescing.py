import asyncio
from collections.abc import Sequence

import pytest

from leaseq.adapters.batching import coalescer
from leaseq.adapters.batching.coalescer import Coalescer
from leaseq.domain.errors import OverloadedError, StorageUnavailableError


class Desk:
    """Doubles numbers, one batch at a time, each when the gate lets it through."""

    def __init__(self, *, open_gate: bool = False) -> None:
        self.batches: list[list[int]] = []
        self.started = asyncio.Event()
        self.gate = asyncio.Event()
        self.fault: Exception | None = None
        if open_gate:
            self.gate.set()

    async def double(self, items: Sequence[int]) -> list[int]:
        self.batches.append(list(items))
        self.started.set()
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        return [2 * item for item in items]


async def busy(desk: Desk, calls: Coalescer[int, int]) -> asyncio.Task[list[int]]:
    """Submit a first call, and return once its batch is being carried out."""
    first = asyncio.create_task(calls.submit([0]))
    await desk.started.wait()
    return first


async def submitted(calls: Coalescer[int, int], *items: int) -> asyncio.Task[list[int]]:
    call = asyncio.create_task(calls.submit(items))
    await asyncio.sleep(0)
    return call


async def test_a_call_that_is_alone_is_carried_out_at_once() -> None:
    desk = Desk(open_gate=True)
    calls = Coalescer(desk.double)

    assert await calls.submit([1, 2]) == [2, 4]
    assert desk.batches == [[1, 2]]


async def test_calls_that_come_meanwhile_travel_in_the_next_batch() -> None:
    desk = Desk()
    calls = Coalescer(desk.double)
    first = await busy(desk, calls)
    others = [await submitted(calls, 1, 2), await submitted(calls), await submitted(calls, 3)]

    desk.gate.set()

    assert await asyncio.gather(first, *others) == [[0], [2, 4], [], [6]]
    assert desk.batches == [[0], [1, 2, 3]]


async def test_a_call_cancelled_before_its_batch_is_taken_out() -> None:
    desk = Desk()
    calls = Coalescer(desk.double)
    first = await busy(desk, calls)
    cancelled, kept = await submitted(calls, 1), await submitted(calls, 2)

    cancelled.cancel()
    desk.gate.set()

    assert (await first, await kept) == ([0], [4])
    assert desk.batches == [[0], [2]]


async def test_a_call_cancelled_during_its_batch_harms_nobody_else() -> None:
    desk = Desk(open_gate=True)
    calls = Coalescer(desk.double)
    one, two = asyncio.create_task(calls.submit([1])), asyncio.create_task(calls.submit([2]))
    desk.gate.clear()
    await desk.started.wait()

    one.cancel()
    desk.gate.set()

    assert await two == [4]
    assert desk.batches == [[1, 2]]


async def test_a_fault_is_told_to_every_call_of_its_batch_and_to_no_other() -> None:
    desk = Desk()
    desk.fault = StorageUnavailableError("away")
    calls = Coalescer(desk.double)
    one, two = asyncio.create_task(calls.submit([1])), asyncio.create_task(calls.submit([2]))
    await desk.started.wait()

    desk.gate.set()
    failed = await asyncio.gather(one, two, return_exceptions=True)
    desk.fault = None

    assert [type(fault) for fault in failed] == [StorageUnavailableError] * 2
    assert await calls.submit([3]) == [6]


async def test_a_batch_holds_at_most_a_thousand_items() -> None:
    desk = Desk()
    calls = Coalescer(desk.double)
    first = await busy(desk, calls)
    waiting = [await submitted(calls, *range(n)) for n in (600, 400, 1, 1000)]

    desk.gate.set()
    await asyncio.gather(first, *waiting)

    assert [len(batch) for batch in desk.batches] == [1, 1000, 1, 1000]


async def test_too_many_waiting_items_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coalescer, "MAX_WAITING_ITEMS", 3)
    desk = Desk()
    calls = Coalescer(desk.double)
    first = await busy(desk, calls)
    waiting = await submitted(calls, 1, 2, 3)

    with pytest.raises(OverloadedError):
        await calls.submit([4])

    desk.gate.set()
    assert (await first, await waiting) == ([0], [2, 4, 6])
    assert await calls.submit([4]) == [8]


async def test_close_waits_for_everything_submitted() -> None:
    desk = Desk()
    calls = Coalescer(desk.double)
    first, second = await busy(desk, calls), await submitted(calls, 1)
    closing = asyncio.create_task(calls.close())
    await asyncio.sleep(0)
    assert not closing.done()

    desk.gate.set()
    await closing

    assert calls.idle
    assert (first.done(), second.done()) == (True, True)


async def test_many_small_calls_linger_for_others() -> None:
    desk = Desk()
    calls = Coalescer(desk.double)
    first = await busy(desk, calls)
    early = [await submitted(calls, n) for n in range(1, 6)]

    desk.gate.set()
    await first
    late = asyncio.create_task(calls.submit([6]))
    await asyncio.gather(late, *early)

    assert desk.batches == [[0], [1, 2, 3, 4, 5, 6]]
