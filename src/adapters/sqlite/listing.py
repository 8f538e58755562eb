"""What operators ask for: pages of tasks, and how full the queues are."""

from __future__ import annotations

import heapq
import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import datetime
from typing import Final

from ...domain import contract
from ...domain.ids import QueueName
from ...domain.limits import COUNTED_EXACTLY
from ...domain.storing import Found, QueueDepths, Selection
from ...domain.task import Status
from ...domain.views import Depth
from .finding import due_since
from .rows import WHOLE, WITHOUT_PAYLOAD, found

# The index `tasks_listed` holds a line for each status and queue, ordered by id. From the
# first entry of a queue SQLite steps to the first of the next: one probe a queue.
_QUEUES_OF_STATUS: Final = """
    WITH RECURSIVE seen (queue) AS (
        SELECT min(queue) FROM tasks INDEXED BY tasks_listed WHERE status = :status
        UNION ALL
        SELECT (
            SELECT min(queue) FROM tasks INDEXED BY tasks_listed
            WHERE status = :status AND queue > seen.queue
        )
        FROM seen WHERE seen.queue IS NOT NULL
    )
"""
_QUEUES: Final = f"{_QUEUES_OF_STATUS} SELECT queue FROM seen WHERE queue IS NOT NULL"  # noqa: S608

_QUEUES_WITH_KEYS: Final = """
    WITH RECURSIVE seen (queue) AS (
        SELECT min(queue) FROM tasks INDEXED BY tasks_keyed WHERE idempotency_key IS NOT NULL
        UNION ALL
        SELECT (
            SELECT min(queue) FROM tasks INDEXED BY tasks_keyed
            WHERE idempotency_key IS NOT NULL AND queue > seen.queue
        )
        FROM seen WHERE seen.queue IS NOT NULL
    )
    SELECT queue FROM seen WHERE queue IS NOT NULL
"""

_LINE: Final = """
    SELECT id, rowid FROM tasks INDEXED BY tasks_listed
    WHERE status = :status AND queue = CAST(:queue AS TEXT) AND id < :before
        AND (:type IS NULL OR type = :type)
    ORDER BY id DESC
"""

_EVERYTHING: Final = """
    SELECT id, rowid FROM tasks
    WHERE id < :before AND (:type IS NULL OR type = :type)
    ORDER BY id DESC
"""

_HOLDER: Final = """
    SELECT id, rowid FROM tasks INDEXED BY tasks_keyed
    WHERE queue = CAST(:queue AS TEXT) AND idempotency_key = :key AND id < :before
        AND (:type IS NULL OR type = :type)
        AND status IN (SELECT value FROM json_each(:statuses))
"""

_READ: Final = f"SELECT {WITHOUT_PAYLOAD} FROM tasks WHERE rowid = ?"  # noqa: S608  constants
_READ_WHOLE: Final = f"SELECT {WHOLE} FROM tasks WHERE rowid = ?"  # noqa: S608  constants

_DEPTHS: Final = f"""
    {_QUEUES_OF_STATUS}
    SELECT queue, (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks INDEXED BY tasks_listed
            WHERE status = :status AND tasks.queue = seen.queue LIMIT :enough
        )
    )
    FROM seen WHERE queue IS NOT NULL
"""  # noqa: S608  made of constants

_AFTER_ANY_ID: Final = b""
"""To SQLite any blob sorts after any text."""

_Entry = tuple[bytes, int]
"""An id, and the row it stands in."""

_Line = tuple[str, dict[str, object]]
"""A statement that gives entries, the greatest id first, and its parameters."""


def search(
    connection: sqlite3.Connection, wanted: Selection, *, limit: int, with_payload: bool
) -> Found:
    """Return tasks, the greatest id first; see `TaskRepository.search`."""
    chosen = _greatest(connection, _lines(connection, wanted), limit)
    read = _READ_WHOLE if with_payload else _READ
    return found(connection.execute(read, (rowid,)).fetchone() for _, rowid in chosen)


def _lines(connection: sqlite3.Connection, wanted: Selection) -> Iterator[_Line]:
    given: dict[str, object] = {
        "before": wanted.before or _AFTER_ANY_ID,
        "type": wanted.type,
    }
    statuses = tuple(dict.fromkeys(wanted.statuses)) or tuple(Status)
    if wanted.idempotency_key is not None:
        sought = {**given, "key": wanted.idempotency_key, "statuses": json.dumps(statuses)}
        for queue in _queues(connection, wanted, _QUEUES_WITH_KEYS):
            yield _HOLDER, {**sought, "queue": queue}
    elif wanted.queue is None and not wanted.statuses:
        yield _EVERYTHING, given
    else:
        for status in statuses:
            for queue in _queues(connection, wanted, _QUEUES, status=status.value):
                yield _LINE, {**given, "status": status.value, "queue": queue}


def _queues(
    connection: sqlite3.Connection, wanted: Selection, statement: str, **parameters: str
) -> list[bytes]:
    if wanted.queue is not None:
        return [wanted.queue.encode()]
    return [queue for (queue,) in connection.execute(statement, parameters)]


def _greatest(connection: sqlite3.Connection, lines: Iterable[_Line], limit: int) -> list[_Entry]:
    """Return the greatest of all entries, reading each line no further than it matters."""
    best: list[_Entry] = []
    for statement, parameters in lines:
        with closing(connection.execute(statement, parameters)) as entries:
            for entry in entries:
                if len(best) < limit:
                    heapq.heappush(best, entry)
                elif entry > best[0]:
                    heapq.heapreplace(best, entry)
                else:
                    break
    return sorted(best, reverse=True)


def stats(connection: sqlite3.Connection, *, now: datetime) -> list[QueueDepths]:
    """Return how full each queue is; see `TaskRepository.stats`."""
    depths: defaultdict[bytes, dict[Status, Depth]] = defaultdict(dict)
    for status in Status:
        counts = {"status": status.value, "enough": COUNTED_EXACTLY + 1}
        for queue, count in connection.execute(_DEPTHS, counts).fetchall():
            depths[queue][status] = contract.depth(count)
    return [
        _queue_depths(connection, queue.decode(errors="replace"), depths[queue], now=now)
        for queue in sorted(depths)
    ]


def _queue_depths(
    connection: sqlite3.Connection, name: str, depths: dict[Status, Depth], *, now: datetime
) -> QueueDepths:
    queue = QueueName(name)
    return QueueDepths(
        queue=queue,
        depths=depths,
        oldest_due_since=due_since(connection, queue, now=now),
    )
