"""PostgreSQL as a ground for claims: each a schema of its own."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Final

import attrs
import psycopg
from psycopg import sql

from claims import QUEUE, Rows
from leaseq.adapters.postgres.claiming import Claiming
from leaseq.adapters.postgres.statements import Schema
from leaseq.adapters.postgres.storage import open_postgres
from leaseq.domain.ports import Storage
from leaseq.domain.storing import Demand
from postgres_plans import Explaining

INDEXES: Final[dict[bool, Collection[str]]] = {
    True: {"tasks_claimable", "tasks_pkey", "queues_pkey"},
    False: {"tasks_waiting", "tasks_pkey", "queues_pkey"},
}

# Ids that rise, as those of real tasks do.
_FILL: Final = """
    INSERT INTO tasks (
        id, queue, type, payload, payload_bytes, status, priority, run_after, finished_at
    )
    SELECT ('0190' || substr(md5(%(mark)s), 1, 8) || lpad(to_hex(n), 20, '0'))::uuid,
        %(queue)s, %(type)s, '{}', 2, %(status)s, %(priority)s,
        %(run_after)s::timestamptz + n * interval '1 microsecond',
        CASE WHEN %(status)s <> 'queued' THEN %(run_after)s::timestamptz END
    FROM generate_series(1, %(number)s) AS n
"""


@attrs.frozen(kw_only=True)
class PostgresGround:
    """A `Ground` in a schema."""

    storage: Storage
    connection: psycopg.Connection
    claiming: Claiming
    explaining: Explaining

    async def fill(self, rows: Rows) -> None:
        """Store tasks; see `Ground.fill`."""
        values = {
            "mark": secrets.token_hex(8),
            "queue": QUEUE,
            "type": rows.type,
            "status": rows.status,
            "priority": rows.priority,
            "run_after": datetime.now(UTC) + rows.due_in,
            "number": rows.number,
        }
        await asyncio.to_thread(self.connection.execute, _FILL, values)

    async def analyze(self) -> None:
        """Let the planner look; see `Ground.analyze`."""
        await asyncio.to_thread(self.connection.execute, "VACUUM ANALYZE tasks")

    async def indexes(self, demand: Demand, *, now: datetime) -> Collection[str]:
        """Return the indexes read; see `Ground.indexes`."""
        await self.claiming.claim(demand, now=now)
        return self.explaining.indexes


@asynccontextmanager
async def postgres_ground(dsn: str) -> AsyncIterator[PostgresGround]:
    """Open a new schema, and drop it at the end."""
    schema = f"bench_{secrets.token_hex(4)}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            async with open_postgres(dsn, schema=schema) as storage:
                # What the planner knows, and when, is for the measurement to say.
                connection.execute(sql.SQL("SET search_path = {}").format(sql.Identifier(schema)))
                connection.execute("ALTER TABLE tasks SET (autovacuum_enabled = off)")
                connection.execute("VACUUM ANALYZE tasks")
                explaining = Explaining(connection)
                yield PostgresGround(
                    storage=storage,
                    connection=connection,
                    claiming=Claiming(explaining, Schema(schema)),  # type: ignore[arg-type]  # stands for Connections
                    explaining=explaining,
                )
        finally:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
            )
