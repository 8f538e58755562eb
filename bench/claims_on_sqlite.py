"""SQLite as a ground for claims: each a file of its own."""

from __future__ import annotations

import asyncio
import re
import secrets
import sqlite3
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import attrs

from claims import QUEUE, Rows
from leaseq.adapters.sqlite import claiming, open_sqlite
from leaseq.adapters.sqlite.connection import connect_writer
from leaseq.adapters.sqlite.rows import microseconds
from leaseq.domain.ports import Storage
from leaseq.domain.storing import Demand

_INDEX: Final = re.compile(r"INDEX (\w+)")
_TABLE_WALK: Final = "walks the table"

# Of `queues` the key, whose index SQLite names by itself.
_KEYS: Final = {"sqlite_autoindex_queues_1"}
INDEXES: Final[dict[bool, Collection[str]]] = {
    True: {"tasks_claimable"} | _KEYS,
    False: {"tasks_waiting"} | _KEYS,
}

_FILL: Final = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :number)
    INSERT INTO tasks (
        id, queue, type, payload, payload_bytes, priority, run_after, status, finished_at
    )
    SELECT printf('0190%04x-0000-7000-8000-%012x', :mark, i), :queue, :type, '{}', 2, :priority,
        :run_after + i, :status, CASE WHEN :status = 'queued' THEN NULL ELSE :run_after + i END
    FROM n
"""


@attrs.frozen(kw_only=True)
class SqliteGround:
    """A `Ground` in a file."""

    storage: Storage
    path: Path

    async def fill(self, rows: Rows) -> None:
        """Store tasks; see `Ground.fill`."""
        values = {
            "mark": secrets.randbelow(2**16),
            "queue": QUEUE,
            "type": rows.type,
            "status": rows.status,
            "priority": rows.priority,
            "run_after": microseconds(datetime.now(UTC) + rows.due_in),
            "number": rows.number,
        }
        await asyncio.to_thread(self._execute, _FILL, values)

    async def analyze(self) -> None:
        """Let the planner look; see `Ground.analyze`."""
        await asyncio.to_thread(self._execute, "ANALYZE", {})

    def _execute(self, statement: str, values: dict[str, object]) -> None:
        with closing(connect_writer(self.path, lock_wait=timedelta(seconds=10))) as connection:
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute(statement, values)
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    async def indexes(self, demand: Demand, *, now: datetime) -> Collection[str]:
        """Return the indexes read; see `Ground.indexes`."""
        with closing(connect_writer(self.path, lock_wait=timedelta(seconds=10))) as connection:
            said: list[str] = []
            connection.execute("BEGIN IMMEDIATE")
            connection.set_trace_callback(said.append)
            claiming.claim(connection, demand, now=now)
            connection.set_trace_callback(None)
            connection.execute("ROLLBACK")
            reads = {text for text in said if text.lstrip().startswith("SELECT")}
            return {how for read in reads for how in _ways(connection, read)}


def _ways(connection: sqlite3.Connection, read: str) -> set[str]:
    ways = set()
    for *_, detail in connection.execute(f"EXPLAIN QUERY PLAN {read}"):
        step = detail.decode()
        if found := _INDEX.search(step):
            ways.add(found[1])
        elif step.startswith("SCAN"):
            ways.add(_TABLE_WALK)
    return ways


def _remove(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


@asynccontextmanager
async def sqlite_ground(folder: Path) -> AsyncIterator[SqliteGround]:
    """Open a new file, and remove it at the end."""
    path = folder / f"{secrets.token_hex(4)}.db"
    try:
        async with open_sqlite(path) as storage:
            yield SqliteGround(storage=storage, path=path)
    finally:
        _remove(path)
