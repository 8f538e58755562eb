import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from datetime import timedelta

import pytest

from leaseq.domain.errors import (
    ContendedError,
    FieldViolation,
    InvalidArgumentError,
    LeaseLostError,
    LostReason,
    StorageUnavailableError,
    TaskQueueError,
)
from leaseq.domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
    Settlement,
)
from leaseq.domain.task import TaskError
from leaseq.domain.views import Beat, Enqueued, LeasedTask, TaskView
from leaseq.entrypoints.worker.settling import Report, Settler
from leaseq.testing import FixedJitter, a_task_id
from worker_rig import soon


class Server:
    """The far end of reports: takes each batch as `answer` says, once the gate is open."""

    def __init__(self) -> None:
        self.batches: list[list[Settlement]] = []
        self.faults: list[Exception] = []
        self.answer: Callable[[Settlement], TaskQueueError | None] = lambda _: None
        self.called = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        self.batches.append(list(settlements))
        self.called.set()
        await self.gate.wait()
        if self.faults:
            raise self.faults.pop(0)
        return [self.answer(settlement) for settlement in settlements]

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        raise NotImplementedError(request)

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        raise NotImplementedError(request)

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        raise NotImplementedError(tasks)

    async def get(self, task_id: str) -> TaskView:
        raise NotImplementedError(task_id)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def pauses() -> list[timedelta]:
    return []


@pytest.fixture
async def settler(server: Server, pauses: list[timedelta]) -> AsyncIterator[Settler]:
    async def pause(span: timedelta) -> None:
        pauses.append(span)
        await asyncio.sleep(0)

    settler = Settler(
        server,
        worker_id="worker-1",
        deadline=timedelta(seconds=10),
        jitter=FixedJitter(),
        pause=pause,
    )
    work = asyncio.create_task(settler.work())
    yield settler
    work.cancel()
    with suppress(asyncio.CancelledError):
        await work


def a_ref(number: int) -> LeaseRef:
    return LeaseRef(task_id=a_task_id(number), lease_token=f"token-{number}")


def complete(number: int, result: str = "") -> Complete:
    return Complete(ref=a_ref(number), result=result)


async def reporting(settler: Settler, settlement: Settlement) -> asyncio.Task[Report]:
    report = asyncio.create_task(settler.report(settlement))
    await asyncio.sleep(0)
    return report


async def test_a_lone_outcome_is_sent_at_once(settler: Settler, server: Server) -> None:
    assert await soon(settler.report(complete(1))) is Report.TAKEN

    assert server.batches == [[complete(1)]]


async def test_outcomes_that_come_meanwhile_travel_together(
    settler: Settler, server: Server
) -> None:
    server.gate.clear()
    first = await reporting(settler, complete(1))
    await soon(server.called.wait())
    others = [await reporting(settler, complete(number)) for number in range(2, 6)]

    server.gate.set()
    await soon(asyncio.gather(first, *others))

    assert [len(batch) for batch in server.batches] == [1, 4]


async def test_a_call_carries_no_more_than_a_server_accepts(
    settler: Settler, server: Server
) -> None:
    server.gate.clear()
    first = await reporting(settler, complete(0))
    await soon(server.called.wait())
    large = [await reporting(settler, complete(number, "é" * 500_000)) for number in range(1, 6)]
    many = [await reporting(settler, complete(number)) for number in range(6, 1506)]

    server.gate.set()
    await soon(asyncio.gather(first, *large, *many))

    assert [len(batch) for batch in server.batches[1:3]] == [3, 1000]
    assert all(len(batch) <= 1000 for batch in server.batches)


async def test_a_report_is_repeated_until_it_is_taken(
    settler: Settler, server: Server, pauses: list[timedelta]
) -> None:
    server.faults = [StorageUnavailableError("away"), OSError("reset"), TimeoutError()]

    assert await soon(settler.report(complete(1))) is Report.TAKEN

    assert server.batches == [[complete(1)]] * 4
    assert [pause.total_seconds() for pause in pauses] == [0.1, 0.2, 0.4]


async def test_thousands_of_failures_do_not_end_the_reporting(
    settler: Settler, server: Server, pauses: list[timedelta]
) -> None:
    server.faults = [OSError("reset")] * 5000

    assert await soon(settler.report(complete(1))) is Report.TAKEN

    assert max(pauses).total_seconds() == 2


async def test_a_lost_lease_is_reported_no_more(settler: Settler, server: Server) -> None:
    server.answer = lambda _: LeaseLostError(a_task_id(1), LostReason.LEASE_EXPIRED)

    assert await soon(settler.report(complete(1))) is Report.REFUSED

    assert len(server.batches) == 1


async def test_what_is_contended_is_tried_again_alone(settler: Settler, server: Server) -> None:
    refusals: list[TaskQueueError | None] = [None, None, ContendedError("task"), None]
    server.answer = lambda _: refusals.pop(0)
    server.gate.clear()
    reports = [await reporting(settler, complete(number)) for number in (1, 2, 3)]
    server.gate.set()

    assert set(await soon(asyncio.gather(*reports))) == {Report.TAKEN}

    assert server.batches == [[complete(1)], [complete(2), complete(3)], [complete(3)]]


async def test_a_result_the_server_refuses_is_reported_as_a_failure(
    settler: Settler, server: Server
) -> None:
    violation = FieldViolation(field="result", description="is larger than 1 MiB")

    def refuse_results(settlement: Settlement) -> TaskQueueError | None:
        return InvalidArgumentError([violation]) if isinstance(settlement, Complete) else None

    server.answer = refuse_results

    assert await soon(settler.report(complete(1, "[1]"))) is Report.TAKEN

    [failure] = server.batches[1]
    assert isinstance(failure, Fail)
    assert not failure.retry
    assert "is larger than 1 MiB" in failure.error.message


@pytest.mark.parametrize(
    "settlement", [Fail(ref=a_ref(1), error=TaskError(type="x")), Release(ref=a_ref(1))], ids=repr
)
async def test_nonsense_without_a_substitute_is_given_up(
    settler: Settler, server: Server, settlement: Settlement
) -> None:
    server.answer = lambda _: InvalidArgumentError([])

    assert await soon(settler.report(settlement)) is Report.REFUSED


async def test_one_report_that_cannot_travel_does_not_hold_up_the_rest(
    settler: Settler, server: Server
) -> None:
    poison = complete(0)

    async def refuse_calls_with_poison(
        settlements: Sequence[Settlement],
    ) -> list[TaskQueueError | None]:
        if poison in settlements:
            raise OSError("too large")
        return [None for _ in settlements]

    server.settle = refuse_calls_with_poison  # type: ignore[method-assign]
    stuck = await reporting(settler, poison)
    others = [await reporting(settler, complete(number)) for number in range(1, 50)]

    assert set(await soon(asyncio.gather(*others))) == {Report.TAKEN}

    assert not stuck.done()
    settler.give_up(poison.ref)
    assert await soon(stuck) is Report.GIVEN_UP


async def test_a_report_under_way_can_be_given_up(settler: Settler, server: Server) -> None:
    server.gate.clear()
    report = await reporting(settler, complete(1))
    await soon(server.called.wait())

    settler.give_up(a_ref(1))

    assert await soon(report) is Report.GIVEN_UP
    server.gate.set()
    assert await soon(settler.report(complete(2))) is Report.TAKEN
