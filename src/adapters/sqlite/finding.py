"""Reads that an index answers whole."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ...domain.ids import QueueName, TaskId
from ...domain.storing import Found
from .rows import END_OF_TIME, WHOLE, WITHOUT_PAYLOAD, found, microseconds, moment

_BY_ID: Final = "FROM tasks WHERE id IN (SELECT value FROM json_each(?))"
_LOAD_WHOLE: Final = f"SELECT {WHOLE} {_BY_ID}"
_LOAD: Final = f"SELECT {WITHOUT_PAYLOAD} {_BY_ID}"

# There are as many leases as there are busy workers: few enough to look at each.
_EXPIRED: Final = f"""
    SELECT {WITHOUT_PAYLOAD} FROM tasks INDEXED BY tasks_listed
    WHERE status = 'leased' AND lease_expires_at <= :now
    LIMIT :limit
"""  # noqa: S608  made of constants

# `tasks_waiting` holds a line for each queue and priority, ordered by `run_after`. From the
# top of a line SQLite steps to the next lower priority: two probes a line.
_EARLIEST: Final = """
    WITH RECURSIVE lines (queue, priority) AS (
        SELECT value, (
            SELECT max(priority) FROM tasks INDEXED BY tasks_waiting
            WHERE status = 'queued' AND queue = value
        )
        FROM json_each(:queues)
        UNION ALL
        SELECT queue, (
            SELECT max(priority) FROM tasks INDEXED BY tasks_waiting
            WHERE status = 'queued' AND queue = lines.queue AND priority < lines.priority
        )
        FROM lines WHERE priority IS NOT NULL
    )
    SELECT min((
        SELECT min(run_after) FROM tasks INDEXED BY tasks_waiting
        WHERE status = 'queued' AND queue = lines.queue AND priority = lines.priority
            AND run_after >= :not_before AND run_after < :before
    ))
    FROM lines WHERE priority IS NOT NULL
"""


def load(connection: sqlite3.Connection, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
    """Return tasks by id; see `TaskRepository.load`."""
    statement = _LOAD_WHOLE if with_payload else _LOAD
    return found(connection.execute(statement, (json.dumps(ids),)))


def expired(connection: sqlite3.Connection, *, now: datetime, limit: int) -> Found:
    """Return leased tasks whose lease has ended; see `TaskRepository.expired`."""
    return found(connection.execute(_EXPIRED, {"now": microseconds(now), "limit": limit}))


def next_due(
    connection: sqlite3.Connection, queues: Sequence[QueueName], *, now: datetime
) -> datetime | None:
    """Return when the next task of these queues becomes due; see `TaskRepository.next_due`."""
    return _earliest(connection, queues, not_before=microseconds(now) + 1, before=END_OF_TIME)


def due_since(
    connection: sqlite3.Connection, queue: QueueName, *, now: datetime
) -> datetime | None:
    """Return the `run_after` of the task of a queue that has been due longest."""
    return _earliest(connection, [queue], not_before=0, before=microseconds(now) + 1)


def _earliest(
    connection: sqlite3.Connection, queues: Sequence[QueueName], *, not_before: int, before: int
) -> datetime | None:
    given = {"queues": json.dumps(queues), "not_before": not_before, "before": before}
    [stored] = connection.execute(_EARLIEST, given).fetchone()
    return None if stored is None else moment(stored)
