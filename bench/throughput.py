"""How much goes through one server, by kind of call, and through workers. Nothing is required."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Final

import attrs
import psycopg
from psycopg import sql

from calling import rate
from leaseq.domain.requests import Complete, LeaseRequest, NewTask, Settlement
from leaseq.domain.views import LeasedTask
from leaseq.entrypoints.connection import Connection, open_async
from leaseq_process import ServerProcess, leaseq_server
from merging import PAYLOAD
from plan import Plan
from processes import cpu_seconds, new_schema, program
from report import Report, per_second

# Callers at once, by the size of their batches: enough to keep a server busy.
_CALLERS: Final = {1: 64, 100: 4, 500: 2}
_WORKERS: Final = (1, 2)
_FILL_BATCH: Final = 500
_LEASE: Final = timedelta(minutes=10)
_PATIENCE: Final = 60.0
_TO_BEGIN_WAITING: Final = 0.5
_BETWEEN_LOOKS: Final = 0.25


@attrs.frozen(kw_only=True)
class Speed:
    """How fast something goes, and what it costs the server: that varies less with neighbours."""

    rate: float
    """Tasks per second."""

    cpu: float
    """Seconds of the server's process per task; not a number where nobody tells."""

    def cells(self) -> tuple[str, str]:
        """Return both, to be read."""
        return per_second(self.rate), f"{self.cpu * 1e6:.0f}"


@attrs.frozen(kw_only=True)
class Progress:
    """How far workers have come with the tasks of one queue."""

    left: int
    seconds: float
    """Between the first end of a task and the last one."""


@attrs.frozen(kw_only=True)
class Database:
    """Where a server keeps its tasks, and how to look at them behind its back."""

    arguments: tuple[str, ...]
    """That tell a server of it."""

    progress: Callable[[str], Progress]
    """Of the queue with this name."""


async def measure(report: Report, plan: Plan, dsn: str, folder: Path) -> None:
    """Measure calls, then workers, on each database."""
    calls: dict[str, dict[str, Speed]] = {}
    worked: dict[str, dict[str, Speed]] = {}
    for name, given in (("PostgreSQL", _postgres(dsn)), ("SQLite", _sqlite(folder))):
        with ExitStack() as stack:
            database = stack.enter_context(given)
            server = stack.enter_context(leaseq_server(*database.arguments, cwd=folder))
            async with open_async(server.url) as connection:
                calls[name] = await _speeds_of_calls(connection, plan, server.pid)
                worked[name] = {
                    f"{count} worker{'s' * (count > 1)}": await _speed_of_workers(
                        connection, database, server, count=count, tasks=plan.tasks
                    )
                    for count in _WORKERS
                }
    for title, speeds in (
        ("Calls through one server, in batches of 1 (64 callers), 100 (4) and 500 (2)", calls),
        ("Enqueued before, then run by workers of 20 slots that do nothing", worked),
    ):
        head = [cell for name in speeds for cell in (f"{name}, tasks/s", "server CPU, us/task")]
        table = [
            [what, *(cell for of_one in speeds.values() for cell in of_one[what].cells())]
            for what in next(iter(speeds.values()))
        ]
        report.table(title, ["", *head], table)


async def _speeds_of_calls(connection: Connection, plan: Plan, pid: int) -> dict[str, Speed]:
    speeds: dict[str, dict[int, Speed]] = {"enqueue": {}, "lease": {}, "settle": {}}
    for size, callers in _CALLERS.items():
        flow = _Flow(connection, size)
        calls = {"enqueue": flow.enqueue, "lease": flow.lease, "settle": flow.settle}
        for verb, call in calls.items():
            speeds[verb][size] = await _speed(callers, plan.seconds, call, pid)
        await flow.clear()
    return {
        f"{verb} {size}": by_size[size] for verb, by_size in speeds.items() for size in _CALLERS
    }


async def _speed(
    callers: int, seconds: float, call: Callable[[], Awaitable[int]], pid: int
) -> Speed:
    cpu, began = cpu_seconds(pid), perf_counter()
    done_per_second = await rate(callers, seconds, call)
    done = done_per_second * (perf_counter() - began)
    return Speed(rate=done_per_second, cpu=(cpu_seconds(pid) - cpu) / done)


@attrs.define
class _Flow:
    """Tasks on their way through one server, in batches of one size."""

    _connection: Connection
    _size: int
    _leased: deque[LeasedTask] = attrs.field(factory=deque)

    async def enqueue(self) -> int:
        await self._connection.queue.enqueue([NewTask(type="call", payload=PAYLOAD)] * self._size)
        return self._size

    async def lease(self) -> int:
        request = LeaseRequest(
            worker_id="bench", types=("call",), max_tasks=self._size, lease_duration=_LEASE
        )
        leased = await self._connection.queue.lease(request)
        self._leased += leased
        return len(leased)

    async def settle(self) -> int:
        batch = range(min(self._size, len(self._leased)))
        ends: list[Settlement] = [Complete(ref=self._leased.popleft().ref) for _ in batch]
        if ends:
            refusals = await self._connection.queue.settle(ends)
            assert refusals == [None] * len(ends)
        return len(ends)

    async def clear(self) -> None:
        """Let no task of this size be in the way of the next."""
        self._size = 1000
        while await self.lease():
            while await self.settle():
                pass


async def _speed_of_workers(
    connection: Connection, database: Database, server: ServerProcess, *, count: int, tasks: int
) -> Speed:
    queue = f"for-{count}"
    await connection.admin.pause_queue(queue)
    new = [NewTask(queue=queue, type="send", payload=PAYLOAD)] * _FILL_BATCH
    for _ in range(tasks // _FILL_BATCH):
        await connection.queue.enqueue(new)
    with ExitStack() as stack:
        for _ in range(count):
            worker = stack.enter_context(program("noop_worker.py", server.url, queue))
            assert worker.stdout is not None
            await asyncio.to_thread(worker.stdout.readline)
        await asyncio.sleep(_TO_BEGIN_WAITING)
        cpu = cpu_seconds(server.pid)
        await connection.admin.resume_queue(queue)
        ends_at = perf_counter() + _PATIENCE
        # The workers are other processes: there is no event to wait for.
        while (  # noqa: ASYNC110
            progress := database.progress(queue)
        ).left and perf_counter() < ends_at:
            await asyncio.sleep(_BETWEEN_LOOKS)
        cpu = cpu_seconds(server.pid) - cpu
    assert not progress.left, f"{progress.left} tasks are left after {_PATIENCE} s"
    return Speed(rate=tasks / progress.seconds, cpu=cpu / tasks)


@contextmanager
def _postgres(dsn: str) -> Iterator[Database]:
    with new_schema(dsn) as schema, psycopg.connect(dsn, autocommit=True) as connection:
        statement = sql.SQL(
            """
            SELECT count(*) FILTER (WHERE status <> 'succeeded'),
                extract(epoch FROM max(finished_at) - min(finished_at))::float8
            FROM {}.tasks WHERE queue = %s
            """
        ).format(sql.Identifier(schema))

        def progress(queue: str) -> Progress:
            row = connection.execute(statement, [queue]).fetchone()
            assert row is not None
            return Progress(left=row[0], seconds=row[1])

        yield Database(arguments=("--storage", dsn, "--schema", schema), progress=progress)


@contextmanager
def _sqlite(folder: Path) -> Iterator[Database]:
    path = folder / "throughput.db"

    def progress(queue: str) -> Progress:
        with closing(sqlite3.connect(path)) as connection:
            row = connection.execute(
                """
                SELECT total(status <> 'succeeded'), (max(finished_at) - min(finished_at)) / 1e6
                FROM tasks WHERE queue = ?
                """,
                [queue],
            ).fetchone()
        return Progress(left=int(row[0]), seconds=row[1])

    yield Database(arguments=("--storage", f"sqlite:///{path}"), progress=progress)
