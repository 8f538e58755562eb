"""Workers as processes of their own, and a server in the test's that can be tampered with."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from subprocess import Popen
from typing import Any

import attrs

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.adapters.ids import RandomIds, RandomJitter
from leaseq.adapters.memory import MemoryStorage
from leaseq.adapters.wake_up import LocalWakeUp
from leaseq.domain.admin import AdminService
from leaseq.domain.maintenance import MaintenanceService
from leaseq.domain.requests import NewTask
from leaseq.domain.service import QueueService
from leaseq.domain.task import Status
from leaseq.domain.views import Enqueued, TaskView
from worker_rig import TappedQueue

PROGRAM = Path(__file__).parent / "worker_program.py"
PROCESSES = Path(__file__).parent / "process_program.py"
"""Whose handlers run in processes."""

SOON = 30.0
"""Seconds after which a test that waits has failed."""

_LOOKED_AT_EVERY = 0.02
_REAPED_EVERY = 0.1
_AT_ONCE = timedelta(milliseconds=1)


@attrs.define(kw_only=True)
class Site:
    """A server on this loop, over a queue that a test may break."""

    queue: BatchingQueue
    tapped: TappedQueue
    admin: AdminService
    grpc: GrpcServer
    url: str

    async def enqueue(self, type_: str, payload: dict[str, Any] | None = None, **more: Any) -> str:
        """Store a task that is due again at once when it fails, and return its id."""
        task = NewTask(
            type=type_,
            payload=json.dumps(payload or {}),
            queue="q",
            retry_base=_AT_ONCE,
            retry_cap=_AT_ONCE,
            **more,
        )
        [stored] = await self.queue.enqueue([task])
        assert isinstance(stored, Enqueued)
        return stored.task.id

    async def get(self, task_id: str) -> TaskView:
        """Return a task."""
        return await self.queue.get(task_id)

    async def until(self, task_id: str, *statuses: Status, within: float = SOON) -> TaskView:
        """Wait until a task has one of these statuses."""
        async with asyncio.timeout(within):
            while (task := await self.get(task_id)).status not in statuses:  # noqa: ASYNC110  the reaper tells nobody
                await asyncio.sleep(_LOOKED_AT_EVERY)
        return task


@asynccontextmanager
async def a_site(storage: MemoryStorage | None = None, *, port: int = 0) -> AsyncIterator[Site]:
    """Serve a storage in memory, and reap its expired leases."""
    kept = storage or MemoryStorage()
    jitter, wake_up = RandomJitter(), LocalWakeUp()
    service = QueueService(
        tasks=kept.tasks, clock=kept.clock, ids=RandomIds(), jitter=jitter, wake_up=wake_up
    )
    queue = BatchingQueue(service, clock=kept.clock, wake_up=wake_up, jitter=jitter)
    tapped = TappedQueue(queue)
    admin = AdminService(tasks=kept.tasks, queues=kept.queues, clock=kept.clock, wake_up=wake_up)
    grpc = GrpcServer(queue=tapped, admin=admin, undo=queue)
    bound = await grpc.start(f"127.0.0.1:{port}")
    maintenance = MaintenanceService(
        tasks=kept.tasks, clock=kept.clock, jitter=jitter, wake_up=wake_up
    )
    reaper = asyncio.create_task(_reap(maintenance))
    try:
        yield Site(
            queue=queue, tapped=tapped, admin=admin, grpc=grpc, url=f"grpc://127.0.0.1:{bound}"
        )
    finally:
        reaper.cancel()
        await grpc.drain(timedelta(seconds=0.1))
        await queue.close()


async def _reap(maintenance: MaintenanceService) -> None:
    while True:
        await maintenance.reap()
        await asyncio.sleep(_REAPED_EVERY)


class WorkerProcess:
    """One `worker_program.py`, with what it says and logs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._heard = asyncio.Event()
        self.lines: list[str] = []
        self.logs: list[dict[str, Any]] = []
        assert process.stdout is not None
        assert process.stderr is not None
        self._readers = [
            asyncio.create_task(self._read(process.stdout, self.lines.append)),
            asyncio.create_task(self._read(process.stderr, self._take_log)),
        ]

    async def _read(self, stream: asyncio.StreamReader, take: Callable[[str], None]) -> None:
        async for line in stream:
            take(line.decode().rstrip())
            self._heard.set()

    def _take_log(self, line: str) -> None:
        try:
            self.logs.append(json.loads(line))
        except ValueError:
            self.logs.append({"event": line})

    @property
    def pid(self) -> int:
        """Its number."""
        return self._process.pid

    @property
    def events(self) -> Counter[str]:
        """How often it logged what."""
        return Counter(log["event"] for log in self.logs)

    def said(self, word: str) -> list[str]:
        """Return the ids of the tasks of which it said `word`."""
        return [line.split()[1] for line in self.lines if line.split()[0] == word]

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until what it said or logged makes this true."""
        try:
            async with asyncio.timeout(SOON):
                while not holds():
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            raise AssertionError(f"it said {self.lines} and logged {self.logs}") from None

    async def until_it_says(self, word: str, task_id: str) -> None:
        """Wait until it said `word` of a task."""
        await self.until(lambda: task_id in self.said(word))

    def pids_of(self, task_id: str) -> list[int]:
        """Return the numbers of the processes that worked at a task."""
        said = [line.split() for line in self.lines]
        return [int(word[4:]) for word, of in said if word.startswith("pid-") and of == task_id]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def send_to_group(self, number: signal.Signals) -> None:
        """Send a signal to it and what belongs to it, as a terminal does."""
        os.killpg(self._process.pid, number)

    async def ended(self) -> int:
        """Wait until it has ended, and return its exit code."""
        async with asyncio.timeout(SOON):
            code = await self._process.wait()
            await asyncio.gather(*self._readers)
        return code

    async def clear_away(self) -> None:
        """Kill it if it still runs."""
        with suppress(ProcessLookupError):
            self._process.kill()
        await self.ended()


@asynccontextmanager
async def a_worker(
    url: str,
    *,
    lease: float = 1.0,
    grace: float = 25.0,
    concurrency: int = 4,
    program: Path = PROGRAM,
) -> AsyncIterator[WorkerProcess]:
    """Start a worker as a process of its own, and kill it at the end if it still runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(program),
        url,
        str(lease),
        str(grace),
        str(concurrency),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        process_group=0,
    )
    worker = WorkerProcess(process)
    try:
        yield worker
    finally:
        await worker.clear_away()


@contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep this many processors busy, or all there are."""
    processes = [Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()
