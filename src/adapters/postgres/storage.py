"""Opening a PostgreSQL database as a storage."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

from psycopg import AsyncConnection

from ...domain.errors import StorageError
from .clock import PostgresClock
from .connections import Bounds, Connections, Pooler
from .faults import translated
from .migrator import ensure_schema
from .queue_repository import PostgresQueueRepository
from .statements import Schema, Statement
from .task_repository import PostgresTaskRepository

_BOUNDS: Final = Bounds()

OLDEST_SERVER: Final = 140000
"""PostgreSQL 14: the oldest that its makers still mended when this was written."""

_CLOCK: Final = Statement(b"SELECT clock_timestamp(), pg_postmaster_start_time()")
_SERVER: Final = Statement(
    b"SELECT current_setting('server_version_num')::integer, current_setting('server_encoding')"
)


class PostgresStorage:
    """A `Storage` in one schema of a PostgreSQL database. Made by `open_postgres`."""

    def __init__(self, connections: Connections, schema: Schema, clock: PostgresClock) -> None:
        self._connections = connections
        self.tasks = PostgresTaskRepository(connections, schema)
        self.queues = PostgresQueueRepository(connections, schema)
        self.clock = clock

    async def tend(self) -> None:
        """
        Measure the database's clock again.

        Raises:
            StorageUnavailableError: it does not answer.
        """
        with translated():
            await self.clock.measure(self._ask)

    async def _ask(self) -> tuple[datetime, datetime]:
        [(now, started)] = await self._connections.fetch(_CLOCK, {})
        return now, started


@asynccontextmanager
async def open_postgres(
    dsn: str,
    *,
    schema: str = "leaseq",
    pool_size: int = 8,
    reserved_size: int = 2,
    bounds: Bounds = _BOUNDS,
    pooler: Pooler = "none",
) -> AsyncIterator[PostgresStorage]:
    """
    Open a database, whose schema is made when there is nothing in it yet, and close it at the end.

    Args:
        dsn: as libpq understands it, a URL or `name=value` words.
        schema: any name of 1 to 63 bytes.
        pool_size: how many connections at most, beside the reserved ones.
        reserved_size: how many only renew and end leases.
        pooler: what stands between us and the server.

    Raises:
        SchemaOutdatedError: the schema is populated and older than this leaseq.
        SchemaTooNewError: it is newer.
        MigrationRefusedError: it could not be made.
        StorageUnavailableError: the database cannot be reached.
        StorageError: the server is too old, or its encoding is not UTF8.
    """
    await ensure_schema(dsn, schema)
    clock = PostgresClock()
    greet = partial(_greet, clock)
    connections = Connections(
        dsn, size=pool_size, reserved=reserved_size, bounds=bounds, pooler=pooler, greet=greet
    )
    async with connections.opened():
        storage = PostgresStorage(connections, Schema(schema), clock)
        await storage.tend()
        await _check_server(connections)
        yield storage


async def _greet(clock: PostgresClock, connection: AsyncConnection) -> None:
    await clock.greet(partial(_ask, connection))


async def _ask(connection: AsyncConnection) -> tuple[datetime, datetime]:
    cursor = connection.cursor(binary=True)
    await cursor.execute(_CLOCK.text)
    row = await cursor.fetchone()
    if row is None:
        raise AssertionError("a SELECT without FROM has one row")
    return row[0], row[1]


async def _check_server(connections: Connections) -> None:
    with translated():
        [(version, encoding)] = await connections.fetch(_SERVER, {})
    if version < OLDEST_SERVER:
        raise StorageError(f"PostgreSQL {version // 10000} is too old: 14 or newer is needed")
    if encoding != "UTF8":
        raise StorageError(f"the database has the encoding {encoding}; UTF8 is needed")
