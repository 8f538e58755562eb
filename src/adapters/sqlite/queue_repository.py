"""Settings and state of queues in an SQLite file."""

from __future__ import annotations

import sqlite3
from typing import Final

import attrs

from ...domain.ids import QueueName
from ...domain.storing import Queue
from .connection_thread import ConnectionThread

_LOAD: Final = "SELECT name, paused, version FROM queues WHERE name = :name"
_ALL: Final = "SELECT name, paused, version FROM queues ORDER BY name"

_UPDATE: Final = """
    UPDATE queues SET paused = :paused, version = :version
    WHERE name = :name AND version = :old_version
"""
_INSERT: Final = """
    INSERT INTO queues (name, paused, version) VALUES (:name, :paused, :version)
    ON CONFLICT DO NOTHING
"""


@attrs.frozen
class SqliteQueueRepository:
    """A `QueueRepository` in an SQLite file."""

    _writer: ConnectionThread

    async def load(self, name: QueueName) -> Queue:
        """Return what is kept about a queue; see `QueueRepository.load`."""
        kept = await self._writer.read(lambda connection: _queues(connection, _LOAD, name=name))
        return kept[0] if kept else Queue(name=name)

    async def all(self) -> list[Queue]:
        """Return what is kept; see `QueueRepository.all`."""
        return await self._writer.read(lambda connection: _queues(connection, _ALL))

    async def replace(self, old: Queue, new: Queue) -> bool:
        """Compare and swap; see `QueueRepository.replace`."""
        return await self._writer.write(lambda connection: _replace(connection, old, new))


def _queues(connection: sqlite3.Connection, statement: str, **parameters: str) -> list[Queue]:
    return [
        Queue(name=QueueName(name.decode(errors="replace")), paused=bool(paused), version=version)
        for name, paused, version in connection.execute(statement, parameters)
    ]


def _replace(connection: sqlite3.Connection, old: Queue, new: Queue) -> bool:
    values = {
        "name": new.name,
        "paused": new.paused,
        "version": new.version,
        "old_version": old.version,
    }
    if connection.execute(_UPDATE, values).rowcount:
        return True
    return old.version == 0 and connection.execute(_INSERT, values).rowcount == 1
