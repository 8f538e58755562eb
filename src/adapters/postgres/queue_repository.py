"""Settings and state per queue."""

from __future__ import annotations

from typing import Final, LiteralString

from psycopg.types.numeric import Int8

from ...domain.ids import QueueName
from ...domain.storing import Queue
from .connections import Connections
from .faults import translated
from .rows import Row
from .statements import Schema

_LOAD: Final[LiteralString] = """
    SELECT name, paused, version FROM {queues} WHERE name = %(name)b
"""
_ALL: Final[LiteralString] = "SELECT name, paused, version FROM {queues} ORDER BY name"

_ADD: Final[LiteralString] = """
    INSERT INTO {queues} (name, paused, version) VALUES (%(name)b, %(paused)b, %(version)b)
    ON CONFLICT DO NOTHING
    RETURNING name
"""
_REPLACE: Final[LiteralString] = """
    UPDATE {queues} SET paused = %(paused)b, version = %(version)b, updated_at = DEFAULT
    WHERE name = %(name)b AND version = %(old_version)b
    RETURNING name
"""


class PostgresQueueRepository:
    """A `QueueRepository` in the table `queues`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._load = schema.statement(_LOAD)
        self._all = schema.statement(_ALL)
        self._add = schema.statement(_ADD)
        self._replace = schema.statement(_REPLACE)

    async def load(self, name: QueueName) -> Queue:
        """Return what is kept about a queue; see `QueueRepository.load`."""
        with translated():
            rows = await self._connections.fetch(self._load, {"name": name})
        return _queue(rows[0]) if rows else Queue(name=name)

    async def all(self) -> list[Queue]:
        """Return what is kept; see `QueueRepository.all`."""
        with translated():
            return [_queue(row) for row in await self._connections.fetch(self._all, {})]

    async def replace(self, old: Queue, new: Queue) -> bool:
        """Compare and swap; see `QueueRepository.replace`."""
        parameters = {
            "name": new.name,
            "paused": new.paused,
            "version": Int8(new.version),
            "old_version": Int8(old.version),
        }
        with translated():
            # Version 0 is that of a queue nobody spoke of, and may be that of a row made by hand.
            changed = await self._connections.fetch(self._replace, parameters)
            if not changed and old.version == 0:
                changed = await self._connections.fetch(self._add, parameters)
        return bool(changed)


def _queue(row: Row) -> Queue:
    name, paused, version = row
    return Queue(name=QueueName(name), paused=paused, version=version)
