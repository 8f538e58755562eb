import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import datetime, timedelta

import attrs
import pytest

from leaseq.adapters.batching import queue as batching
from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.memory import MemoryStorage, MemoryTaskRepository
from leaseq.domain.errors import (
    InvalidArgumentError,
    OverloadedError,
    StorageUnavailableError,
    TaskQueueError,
)
from leaseq.domain.requests import (
    Complete,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
)
from leaseq.domain.service import QueueService
from leaseq.domain.storing import Demand, Found
from leaseq.domain.task import Status
from leaseq.domain.views import Beat, Enqueued, LeasedTask
from leaseq.testing import (
    SECOND,
    CountingIds,
    FixedJitter,
    ManualClock,
    ManualWakeUp,
)


class WatchedTasks(MemoryTaskRepository):
    """A memory storage whose claims are counted, and stay under way while the gate is shut."""

    def __init__(self, storage: MemoryStorage) -> None:
        super().__init__(storage.queues)
        self.looks = 0
        self.fault: Exception | None = None
        self.then: Callable[[], object] | None = None
        self.at_gate = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        self.looks += 1
        if self.fault is not None:
            raise self.fault
        found = await super().claim(demand, now=now)
        self.at_gate.set()
        await self.gate.wait()
        if self.then is not None:
            asyncio.get_running_loop().call_soon(self.then)
        return found


@attrs.frozen
class Server:
    queue: BatchingQueue
    tasks: WatchedTasks
    clock: ManualClock
    wake_up: ManualWakeUp

    async def enqueue(self, count: int = 1, *, delay: timedelta | None = None) -> list[str]:
        answers = await self.queue.enqueue([NewTask(type="t", delay=delay)] * count)
        return [answer.task.id for answer in answers if isinstance(answer, Enqueued)]

    async def waiting(self, count: int = 1) -> list[asyncio.Task[list[LeasedTask]]]:
        """Start Lease calls, and return once all of them wait."""
        calls = [asyncio.create_task(self.queue.lease(asking(f"w{n}"))) for n in range(count)]
        await self.wake_up.until_waiting()
        return calls

    async def attempts_and_status(self, task_id: str) -> tuple[int, Status]:
        task = await self.queue.get(task_id)
        return task.attempts, task.status


def asking(
    worker_id: str = "w", *, wait: timedelta = 30 * SECOND, max_tasks: int = 1
) -> LeaseRequest:
    return LeaseRequest(worker_id=worker_id, wait=wait, max_tasks=max_tasks)


NOW = timedelta(0)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    clock = ManualClock()
    wake_up = ManualWakeUp(clock)
    tasks = WatchedTasks(MemoryStorage(clock))
    service = QueueService(
        tasks=tasks, clock=clock, ids=CountingIds(), jitter=FixedJitter(), wake_up=wake_up
    )
    queue = BatchingQueue(service, clock=clock, wake_up=wake_up, jitter=FixedJitter(), linger=False)
    yield Server(queue, tasks, clock, wake_up)
    await queue.close()


async def test_a_call_that_does_not_wait_gets_what_is_due(server: Server) -> None:
    ids = await server.enqueue(2)

    leased = await server.queue.lease(asking(wait=NOW, max_tasks=5))

    assert [task.task.id for task in leased] == ids


async def test_a_call_that_does_not_wait_gets_nothing_at_once(server: Server) -> None:
    assert await server.queue.lease(asking(wait=NOW)) == []
    assert server.tasks.looks == 1


async def test_a_call_that_waits_gets_what_is_enqueued(server: Server) -> None:
    [call] = await server.waiting()

    ids = await server.enqueue()

    assert [task.task.id for task in await call] == ids


async def test_a_call_that_waits_gets_what_becomes_due(server: Server) -> None:
    ids = await server.enqueue(delay=SECOND / 4)
    [call] = await server.waiting()
    assert server.tasks.looks == 1

    server.clock.advance(SECOND / 4)

    assert [task.task.id for task in await call] == ids
    assert server.tasks.looks == 2


async def test_a_call_that_waits_sees_what_another_server_enqueued(server: Server) -> None:
    [call] = await server.waiting()
    other = QueueService(
        tasks=server.tasks,
        clock=server.clock,
        ids=CountingIds(after=100),
        jitter=FixedJitter(),
        wake_up=ManualWakeUp(server.clock),
    )
    await other.enqueue([NewTask(type="t")])

    server.clock.advance(SECOND)

    assert len(await call) == 1


async def test_a_call_that_waited_in_vain_gets_nothing_at_its_end(server: Server) -> None:
    [call] = await server.waiting()

    for _ in range(29):
        server.clock.advance(SECOND)
        await server.wake_up.until_waiting()
    assert not call.done()
    server.clock.advance(SECOND)

    assert await call == []


async def test_a_thousand_calls_that_wait_cost_one_look_a_tick(server: Server) -> None:
    calls = await server.waiting(1000)
    assert server.tasks.looks == 1

    server.clock.advance(SECOND)
    await server.wake_up.until_waiting()

    assert server.tasks.looks == 2
    server.queue.dismiss_waiters()
    assert await asyncio.gather(*calls) == [[]] * 1000


async def test_a_call_that_joins_those_who_wait_costs_no_look(server: Server) -> None:
    await server.waiting()

    late = asyncio.create_task(server.queue.lease(asking("late", wait=SECOND / 2)))
    await asyncio.sleep(0)
    await server.wake_up.until_waiting()
    server.clock.advance(SECOND / 2)

    assert await late == []
    assert server.tasks.looks == 1
    server.queue.dismiss_waiters()


async def test_a_call_that_does_not_wait_looks_even_beside_those_who_do(server: Server) -> None:
    await server.waiting()

    assert await server.queue.lease(asking("hasty", wait=NOW)) == []
    assert server.tasks.looks == 2
    server.queue.dismiss_waiters()


async def test_those_who_wait_get_one_task_each_in_turn(server: Server) -> None:
    calls = await server.waiting(3)

    ids = await server.enqueue(3)

    assert [[task.task.id for task in await call] for call in calls] == [[one] for one in ids]
    assert server.tasks.looks == 2


async def test_each_waiter_holds_its_own_lease(server: Server) -> None:
    calls = await server.waiting(2)

    ids = await server.enqueue(2)
    await asyncio.gather(*calls)

    owners = [(await server.queue.get(task_id)).lease_owner for task_id in ids]
    assert owners == ["w0", "w1"]


async def test_those_who_got_nothing_wait_on(server: Server) -> None:
    first, second = await server.waiting(2)

    await server.enqueue()
    await first
    await server.wake_up.until_waiting()
    assert not second.done()
    await server.enqueue()

    assert len(await second) == 1


async def test_a_caller_gone_during_the_claim_gives_its_task_to_the_next(server: Server) -> None:
    gone, next_one = await server.waiting(2)
    server.tasks.gate.clear()
    server.tasks.at_gate.clear()
    [task_id] = await server.enqueue()
    await server.tasks.at_gate.wait()

    gone.cancel()
    server.tasks.gate.set()
    [leased] = await next_one

    assert leased.task.id == task_id
    assert (leased.attempt, leased.lease_number) == (1, 2)


async def test_a_caller_gone_as_its_answer_comes_gives_its_task_back(server: Server) -> None:
    [gone] = await server.waiting()

    # Before the answer, which is set in this very turn of the loop, can wake its caller.
    server.tasks.then = gone.cancel
    [task_id] = await server.enqueue()
    await asyncio.wait({gone})
    await server.queue.close()

    assert gone.cancelled()
    assert await server.attempts_and_status(task_id) == (0, Status.QUEUED)
    assert server.tasks.looks == 2


async def test_a_fault_of_the_storage_is_told_to_those_who_wait(server: Server) -> None:
    calls = await server.waiting(2)
    server.tasks.fault = StorageUnavailableError("away")

    server.clock.advance(SECOND)
    told = await asyncio.gather(*calls, return_exceptions=True)
    server.tasks.fault = None

    assert [type(fault) for fault in told] == [StorageUnavailableError] * 2
    assert await server.queue.lease(asking(wait=NOW)) == []


async def test_dismissed_waiters_get_nothing_at_once(server: Server) -> None:
    calls = await server.waiting(3)

    server.queue.dismiss_waiters()

    assert await asyncio.gather(*calls) == [[], [], []]


async def test_a_waiter_dismissed_during_the_claim_still_gets_its_task(server: Server) -> None:
    [call] = await server.waiting()
    server.tasks.gate.clear()
    server.tasks.at_gate.clear()
    await server.enqueue()
    await server.tasks.at_gate.wait()

    server.queue.dismiss_waiters()
    server.tasks.gate.set()

    assert len(await call) == 1


async def test_too_many_waiters_are_refused(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batching, "MAX_WAITERS", 2)
    await server.waiting(2)

    with pytest.raises(OverloadedError):
        await server.queue.lease(asking())

    server.queue.dismiss_waiters()


async def test_a_bad_request_waits_for_nobody(server: Server) -> None:
    with pytest.raises(InvalidArgumentError):
        await server.queue.lease(asking(worker_id=""))


async def test_different_types_are_looked_for_apart(server: Server) -> None:
    everything = asyncio.create_task(server.queue.lease(asking()))
    other = asyncio.create_task(server.queue.lease(attrs.evolve(asking("w2"), types=("other",))))
    await server.wake_up.until_waiting(2)

    await server.enqueue()

    assert len(await everything) == 1
    assert not other.done()
    server.queue.dismiss_waiters()


async def test_heartbeats_and_settles_of_many_callers_are_answered_apart(server: Server) -> None:
    await server.enqueue(2)
    mine, other = await server.queue.lease(asking(wait=NOW, max_tasks=2))
    refs = [
        LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token) for leased in (mine, other)
    ]
    nonsense = LeaseRef(task_id=mine.task.id, lease_token="nonsense")

    beats = await asyncio.gather(
        *(
            server.queue.heartbeat(HeartbeatRequest(worker_id="w", leases=(ref,)))
            for ref in (refs[0], nonsense, refs[1])
        )
    )
    ends = await asyncio.gather(
        *(server.queue.settle([Complete(ref=ref)]) for ref in (refs[0], nonsense, refs[1]))
    )

    assert [isinstance(beat, Beat) for [beat] in beats] == [True, False, True]
    assert [isinstance(end, TaskQueueError) for [end] in ends] == [False, True, False]
