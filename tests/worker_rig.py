"""A worker, a queue in memory, and a hand on everything between them."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import attrs

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.admin import AdminService
from leaseq.domain.errors import TaskQueueError
from leaseq.domain.maintenance import MaintenanceService
from leaseq.domain.ports import TaskQueue
from leaseq.domain.requests import (
    HeartbeatRequest,
    LeaseRequest,
    NewTask,
    Settlement,
)
from leaseq.domain.service import QueueService
from leaseq.domain.task import Status
from leaseq.domain.views import Beat, Enqueued, LeasedTask, TaskView
from leaseq.entrypoints.worker import Worker
from leaseq.entrypoints.worker.moment import Moment
from leaseq.entrypoints.worker.outside import Outside
from leaseq.testing import CountingIds, FixedJitter, ManualClock, ManualWakeUp

T = TypeVar("T")
SOON = 10.0
"""Seconds after which a test that waits has failed."""


class ManualStopwatch:
    """Reads the moment that a test has set."""

    def __init__(self) -> None:
        self._moment = Moment(1000.0, 5000.0)

    def __call__(self) -> Moment:
        """Return the moment."""
        return self._moment

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks."""
        self.advance_apart(steady=seconds, wall=seconds)

    def advance_apart(self, *, steady: float, wall: float) -> None:
        """Let time pass on each clock by itself."""
        self._moment = Moment(self._moment.steady + steady, self._moment.wall + wall)


Before = Callable[[], Awaitable[None]]
"""Done before a call is passed on; may raise or wait."""


class TappedQueue:
    """A `TaskQueue` around another, whose calls a test counts, breaks or holds up."""

    def __init__(self, queue: TaskQueue) -> None:
        self._queue = queue
        self._before: defaultdict[str, deque[Before]] = defaultdict(deque)
        self.calls: Counter[str] = Counter()
        self.leases: list[LeaseRequest] = []
        self.beats: list[HeartbeatRequest] = []
        self.settlements: list[list[Settlement]] = []
        self.polling = 0
        self.ignores_types = False
        self.after_lease: Callable[[list[LeasedTask]], Awaitable[None]] | None = None
        self.stirred = asyncio.Event()

    def next(self, call: str, *before: Before) -> None:
        """Do these before the next calls of this name, one before each."""
        self._before[call].extend(before)

    def break_next(self, call: str, *errors: Exception) -> None:
        """Let the next calls of this name fail."""
        self.next(call, *(raising(error) for error in errors))

    def let_through(self, call: str) -> None:
        """Do nothing more before calls of this name."""
        self._before[call].clear()

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Pass it on."""
        return await self._queue.enqueue(tasks)

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Pass it on."""
        self.leases.append(request)
        self.polling += 1
        try:
            await self._pass("lease")
            if self.ignores_types:
                request = attrs.evolve(request, types=())
            leased = await self._queue.lease(request)
            if self.after_lease is not None:
                await self.after_lease(leased)
            return leased
        finally:
            self.polling -= 1
            self._stir()

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Pass it on."""
        self.beats.append(request)
        await self._pass("heartbeat")
        answers = await self._queue.heartbeat(request)
        self._stir()
        return answers

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """Pass it on."""
        self.settlements.append(list(settlements))
        await self._pass("settle")
        answers = await self._queue.settle(settlements)
        self._stir()
        return answers

    async def get(self, task_id: str) -> TaskView:
        """Pass it on."""
        return await self._queue.get(task_id)

    async def _pass(self, call: str) -> None:
        self.calls[call] += 1
        self._stir()
        if self._before[call]:
            await self._before[call].popleft()()

    def _stir(self) -> None:
        self.stirred.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until calls have made this true."""
        async with asyncio.timeout(SOON):
            while not holds():
                self.stirred.clear()
                await self.stirred.wait()


class OnLoop:
    """A blocking `TaskQueue` for threads, whose calls an event loop carries out."""

    def __init__(self, queue: TaskQueue, loop: asyncio.AbstractEventLoop) -> None:
        self._queue = queue
        self._loop = loop

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Pass it on."""
        return self._wait(self._queue.enqueue(tasks))

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Pass it on."""
        return self._wait(self._queue.lease(request))

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Pass it on."""
        return self._wait(self._queue.heartbeat(request))

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """Pass it on."""
        return self._wait(self._queue.settle(settlements))

    async def get(self, task_id: str) -> TaskView:
        """Pass it on."""
        return self._wait(self._queue.get(task_id))

    def _wait(self, call: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(call, self._loop).result(SOON)


def raising(error: Exception) -> Before:
    """Return what raises `error`."""

    async def do() -> None:
        raise error

    return do


async def nothing() -> None:
    """Let a call through."""


@attrs.define
class Rig:
    """A queue in memory and what a worker needs to reach it."""

    clock: ManualClock = attrs.field(factory=ManualClock)
    stopwatch: ManualStopwatch = attrs.field(factory=ManualStopwatch)
    pauses: list[timedelta] = attrs.field(factory=list)
    jitter: FixedJitter = attrs.field(factory=FixedJitter)
    queue: TappedQueue = attrs.field(init=False)
    batching: BatchingQueue = attrs.field(init=False)
    admin: AdminService = attrs.field(init=False)
    maintenance: MaintenanceService = attrs.field(init=False)
    wake_up: ManualWakeUp = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make the services."""
        storage = MemoryStorage(self.clock)
        self.wake_up = ManualWakeUp(self.clock)
        service = QueueService(
            tasks=storage.tasks,
            clock=self.clock,
            ids=CountingIds(),
            jitter=self.jitter,
            wake_up=self.wake_up,
        )
        self.batching = BatchingQueue(
            service, clock=self.clock, wake_up=self.wake_up, jitter=self.jitter, linger=False
        )
        self.queue = TappedQueue(self.batching)
        self.admin = AdminService(
            tasks=storage.tasks, queues=storage.queues, clock=self.clock, wake_up=self.wake_up
        )
        self.maintenance = MaintenanceService(
            tasks=storage.tasks, clock=self.clock, jitter=self.jitter, wake_up=self.wake_up
        )

    @property
    def outside(self) -> Outside:
        """What a worker needs."""

        @asynccontextmanager
        async def open_async() -> AsyncIterator[TaskQueue]:
            yield self.queue

        @contextmanager
        def open_blocking(_: timedelta) -> Iterator[TaskQueue]:
            yield OnLoop(self.queue, asyncio.get_running_loop())

        async def pause(span: timedelta) -> None:
            self.pauses.append(span)
            await asyncio.sleep(0)

        return Outside(
            open_async=open_async,
            open_blocking=open_blocking,
            jitter=self.jitter,
            stopwatch=self.stopwatch,
            pause=pause,
        )

    def worker(
        self,
        *,
        concurrency: int = 2,
        lease: float = 30.0,
        grace: float = 25.0,
        queues: Sequence[str] = (),
    ) -> Worker:
        """Return a worker on this queue."""
        return Worker(
            "memory://",
            queues=queues,
            concurrency=concurrency,
            lease_duration=lease,
            grace=grace,
            outside=self.outside,
        )

    def advance(self, seconds: float) -> None:
        """Let time pass for the queue and for the worker."""
        self.stopwatch.advance(seconds)
        self.clock.advance(timedelta(seconds=seconds))

    async def enqueue(self, type_: str, payload: str = "{}", **options: Any) -> str:
        """Store a task with other options of NewTask, and return its id."""
        [stored] = await self.batching.enqueue([NewTask(type=type_, payload=payload, **options)])
        assert isinstance(stored, Enqueued)
        return stored.task.id

    async def until_nobody_waits(self) -> None:
        """Return once no Lease call is under way."""
        while self.queue.polling:
            self.queue.stirred.clear()
            await self.queue.stirred.wait()

    async def get(self, task_id: str) -> TaskView:
        """Return a task."""
        return await self.batching.get(task_id)

    async def until(self, task_id: str, status: Status) -> TaskView:
        """Wait until a task has this status."""
        async with asyncio.timeout(SOON):
            while (task := await self.get(task_id)).status is not status:
                self.queue.stirred.clear()
                await self.queue.stirred.wait()
        return task


@asynccontextmanager
async def running(worker: Worker) -> AsyncIterator[asyncio.Task[None]]:
    """Run a worker until the block is left, then let it drain."""
    run = asyncio.create_task(worker.run_async())
    try:
        yield run
    finally:
        worker.stop()
        async with asyncio.timeout(SOON):
            await run


async def soon(awaitable: Awaitable[T]) -> T:
    """Wait for something that a test waits for."""
    async with asyncio.timeout(SOON):
        return await awaitable
