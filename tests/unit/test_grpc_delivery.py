from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any, cast

import grpc
import pytest

from leaseq.adapters.grpc.calls import Calls, Context, Parcel
from leaseq.adapters.grpc.generated import queue_pb2 as pb
from leaseq.adapters.grpc.methods import LEASE
from leaseq.adapters.grpc.waits import WaitName, Waits


class Connection:
    """A call whose reply is lost, or hangs, on the way out."""

    def __init__(self, failure: Exception | None = None) -> None:
        self._failure = failure
        self.writing = asyncio.Event()

    async def write(self, _: bytes) -> None:
        self.writing.set()
        if self._failure is not None:
            raise self._failure
        await asyncio.Event().wait()

    def time_remaining(self) -> float | None:
        return None


class Desk:
    """Deals a reply, and notes when it is told that nobody got it."""

    def __init__(self) -> None:
        self.undone = 0

    async def lease(self, _: pb.LeaseRequest, __: timedelta | None) -> Parcel[pb.LeaseResponse]:
        return Parcel(reply=pb.LeaseResponse(), if_lost=self._undo)

    async def _undo(self) -> None:
        self.undone += 1


def handled(calls: Calls, desk: Desk, connection: Connection) -> Coroutine[Any, Any, None]:
    handler = calls.delivering(LEASE, desk.lease)
    assert handler.unary_stream is not None
    call = handler.unary_stream(b"", cast("grpc.ServicerContext", cast("Context", connection)))
    return cast("Coroutine[Any, Any, None]", call)


async def test_a_reply_that_cannot_be_sent_is_undone() -> None:
    calls, desk = Calls(), Desk()

    with pytest.raises(ConnectionError):
        await handled(calls, desk, Connection(ConnectionError("gone")))

    assert desk.undone == 1
    assert calls.in_flight == 0


async def test_a_reply_whose_caller_goes_away_while_it_is_sent_is_undone() -> None:
    calls, desk, connection = Calls(), Desk(), Connection()
    call = asyncio.create_task(handled(calls, desk, connection))
    await connection.writing.wait()

    call.cancel()
    await asyncio.wait([call])

    assert desk.undone == 1
    assert calls.in_flight == 0


async def test_a_wait_that_begins_after_waits_were_ended_returns_nothing() -> None:
    async def lease() -> list[str]:
        raise AssertionError("nothing is leased any more")

    waits = Waits()
    waits.end_all()

    assert await waits.finish(lease()) == []


class Waiting:
    """A Lease that waits until it is cancelled."""

    def __init__(self, waits: Waits, call_id: str) -> None:
        self._begun = asyncio.Event()
        self.call = asyncio.create_task(
            waits.finish(self._lease(), name=WaitName("worker", call_id))
        )

    async def begun(self) -> Waiting:
        await self._begun.wait()
        return self

    async def _lease(self) -> list[str]:
        self._begun.set()
        await asyncio.Event().wait()
        return ["never"]


async def test_a_wait_is_ended_by_its_name_and_the_others_go_on() -> None:
    waits = Waits()
    first, second = await Waiting(waits, "1").begun(), await Waiting(waits, "2").begun()

    waits.end(WaitName("worker", "1"))

    assert await first.call == []
    assert not second.call.done()
    waits.end(WaitName("worker", "2"))
    assert await second.call == []


async def test_a_wait_that_is_ended_by_name_and_by_a_drain_returns_once() -> None:
    waits = Waits()
    waiting = await Waiting(waits, "1").begun()

    waits.end(WaitName("worker", "1"))
    waits.end_all()

    assert await waiting.call == []


async def test_of_two_waits_by_one_name_none_is_lost() -> None:
    waits = Waits()
    first, second = await Waiting(waits, "1").begun(), await Waiting(waits, "1").begun()

    waits.end(WaitName("worker", "1"))
    assert await first.call == []
    waits.end_all()

    assert await second.call == []


async def test_to_end_a_wait_that_nobody_has_is_nothing() -> None:
    Waits().end(WaitName("worker", "1"))


async def test_a_lease_that_times_out_by_itself_is_not_taken_for_an_ended_wait() -> None:
    async def lease() -> list[str]:
        raise TimeoutError("the storage did not answer")

    with pytest.raises(TimeoutError, match="storage"):
        await Waits().finish(lease())
