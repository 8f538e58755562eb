"""Reading tasks by id, by their leases and by when they are due."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

from psycopg.types.numeric import Int8

from ...domain.ids import QueueName, TaskId
from ...domain.storing import Found
from .binary import UNREADABLE_MOMENT, Texts
from .connections import Connections
from .rows import found
from .statements import LEVELS, Schema

_LOAD: Final[LiteralString] = """
    SELECT {columns} FROM {tasks} AS t WHERE t.id = ANY (%(ids)b::uuid[])
"""
_LOAD_WITHOUT_PAYLOAD: Final[LiteralString] = """
    SELECT {columns_without_payload} FROM {tasks} AS t WHERE t.id = ANY (%(ids)b::uuid[])
"""

# Reads all leases, of which there are as many as busy workers: no index has their ends, as each
# heartbeat would then have to change every index.
_EXPIRED: Final[LiteralString] = """
    SELECT {columns_without_payload} FROM {tasks} AS t
    WHERE t.status = 'leased' AND t.lease_expires_at <= %(now)b
    LIMIT %(limit)b
"""

# Queue by queue and priority by priority: in each line the first that is not due yet.
_NEXT_DUE: Final[LiteralString] = """
    SELECT min(first.run_after)
    FROM unnest(%(queues)b) AS wanted (queue) CROSS JOIN LATERAL (
        WITH {levels}
        SELECT later.run_after FROM levels CROSS JOIN LATERAL (
            SELECT run_after FROM {tasks}
            WHERE status = 'queued' AND queue = wanted.queue AND -priority = levels.rank
                AND run_after > %(now)b
            ORDER BY run_after LIMIT 1
        ) AS later
    ) AS first
"""


class Finding:
    """`load`, `expired` and `next_due` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._load = schema.statement(_LOAD)
        self._load_without_payload = schema.statement(_LOAD_WITHOUT_PAYLOAD)
        self._expired = schema.statement(_EXPIRED)
        self._next_due = schema.statement(_NEXT_DUE, queue="wanted.queue", levels=LEVELS)

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return tasks by id; see `TaskRepository.load`."""
        statement = self._load if with_payload else self._load_without_payload
        # Every heartbeat and settlement begins with a load, none of them with the payload.
        return found(
            await self._connections.fetch(statement, {"ids": Texts(ids)}, reserved=not with_payload)
        )

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return leased tasks whose lease has ended; see `TaskRepository.expired`."""
        return found(
            await self._connections.fetch(self._expired, {"now": now, "limit": Int8(limit)})
        )

    async def next_due(self, queues: Sequence[QueueName], *, now: datetime) -> datetime | None:
        """Return when the next task becomes due; see `TaskRepository.next_due`."""
        [(moment,)] = await self._connections.fetch(
            self._next_due, {"queues": Texts(queues), "now": now}
        )
        return None if moment is UNREADABLE_MOMENT else moment
