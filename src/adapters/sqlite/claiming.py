"""
Claiming within one write transaction.

The index `tasks_claimable` holds the queued tasks in lines, one for each queue, type and
priority, each in the order of leasing; `tasks_waiting` has one for each queue and priority.
A claim reads the heads of the lines it is for, highest priority first: it walks neither
tasks for later, at whatever priority, nor types that nobody asked for.
"""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import ExitStack, closing
from datetime import datetime
from typing import Final

import attrs

from ...domain import lifecycle
from ...domain.ids import QueueName, TaskId, TaskType
from ...domain.storing import Demand, Found
from ...domain.task import Leased, Task
from .faults import REFUSALS
from .rows import WHOLE, lease_values, microseconds, readable, row_id

_MOST_UNREADABLE: Final = 1000
"""A claim that met so many rows that are no tasks does not look for more."""

_ANY: Final = None
"""In the place of a type."""

_ABOVE_ALL: Final = 2**63 - 1
"""Also above what nobody should have stored as a priority."""

_PAUSED: Final = "SELECT 1 FROM queues WHERE name = :queue AND paused"

# INDEXED BY makes a statement fail rather than walk the table, should a planner with strange
# statistics ever prefer that.
_TOP: Final = """
    SELECT max(priority) FROM tasks INDEXED BY tasks_waiting
    WHERE status = 'queued' AND queue = :queue AND priority < :priority
"""
_TOP_OF_TYPE: Final = """
    SELECT max(priority) FROM tasks INDEXED BY tasks_claimable
    WHERE status = 'queued' AND queue = :queue AND type = :type AND priority < :priority
"""

_LINE: Final = """
    SELECT run_after, id, payload_bytes, rowid FROM tasks INDEXED BY tasks_waiting
    WHERE status = 'queued' AND queue = :queue AND priority = :priority AND run_after <= :now
    ORDER BY run_after, id
"""
_LINE_OF_TYPE: Final = """
    SELECT run_after, id, payload_bytes, rowid FROM tasks INDEXED BY tasks_claimable
    WHERE status = 'queued' AND queue = :queue AND type = :type AND priority = :priority
        AND run_after <= :now
    ORDER BY run_after, id
"""

_READ: Final = f"SELECT {WHOLE} FROM tasks WHERE rowid = ?"  # noqa: S608  made of constants

# What `lifecycle.lease` changes and nothing more: SQLite looks at the CHECKs and indexes of
# every column that is named here.
_LEASE: Final = """
    UPDATE tasks SET status = 'leased', lease_token = :lease_token, lease_owner = :lease_owner,
        lease_expires_at = :lease_expires_at, lease_number = :lease_number, version = :version,
        updated_at = :updated_at
    WHERE rowid = :rowid
"""

_Place = tuple[int, bytes, int, int]
"""Of a due task: `run_after`, id, size of its payload, rowid."""


@attrs.frozen
class _Choice:
    """Tasks to lease with their rowids, and ids of rows that cannot be read."""

    tasks: list[tuple[int, Task]] = attrs.field(factory=list)
    unreadable: list[TaskId] = attrs.field(factory=list)

    def is_enough(self, demand: Demand) -> bool:
        return len(self.tasks) == len(demand.grants) or len(self.unreadable) == _MOST_UNREADABLE


def claim(connection: sqlite3.Connection, demand: Demand, *, now: datetime) -> Found:
    """Lease due tasks; see `TaskRepository.claim`."""
    if connection.execute(_PAUSED, {"queue": demand.queue}).fetchone():
        return Found()
    choice = _choose(connection, demand, now=now)
    unreadable = choice.unreadable
    leased: list[Task] = []
    for rowid, task in choice.tasks:
        state = Leased(lease=demand.grants[len(leased)])
        new = lifecycle.lease(task, grant=state.lease, now=now)
        try:
            connection.execute(_LEASE, {"rowid": rowid} | lease_values(new, state))
        except REFUSALS:
            # It would be in the way of all that stand behind it, like a row that cannot be read.
            unreadable.append(task.id)
        else:
            leased.append(new)
    return Found(tasks=tuple(leased), unreadable=tuple(unreadable))


def _choose(connection: sqlite3.Connection, demand: Demand, *, now: datetime) -> _Choice:
    choice = _Choice()
    room = demand.max_bytes
    # Closed before anything is written: what is read must not move beneath the cursors.
    with closing(_due(connection, demand, now=now)) as places:
        for _, _, payload_bytes, rowid in places:
            if choice.tasks and payload_bytes > room:
                break
            stored = connection.execute(_READ, (rowid,)).fetchone()
            task = readable(stored)
            if task is None:
                choice.unreadable.append(row_id(stored))
            else:
                choice.tasks.append((rowid, task))
                room -= payload_bytes
            if choice.is_enough(demand):
                break
    return choice


def _due(
    connection: sqlite3.Connection, demand: Demand, *, now: datetime
) -> Generator[_Place, None, None]:
    """Read the due tasks in the order of leasing, no further than the caller does."""
    types = dict.fromkeys(demand.types) or [_ANY]
    tops = _tops(connection, demand.queue, types, below=_ABOVE_ALL)
    while tops:
        priority = max(tops.values())
        served = [type_ for type_, top in tops.items() if top == priority]
        given = {"queue": demand.queue, "priority": priority, "now": microseconds(now)}
        with ExitStack() as opened:
            lines = [
                opened.enter_context(closing(_line(connection, type_, given))) for type_ in served
            ]
            yield from heapq.merge(*lines)
        later = {type_: top for type_, top in tops.items() if top < priority}
        tops = later | _tops(connection, demand.queue, served, below=priority)


def _line(
    connection: sqlite3.Connection, type_: TaskType | None, given: dict[str, object]
) -> sqlite3.Cursor:
    if type_ is _ANY:
        return connection.execute(_LINE, given)
    return connection.execute(_LINE_OF_TYPE, given | {"type": type_})


def _tops(
    connection: sqlite3.Connection,
    queue: QueueName,
    types: Iterable[TaskType | None],
    *,
    below: int,
) -> dict[TaskType | None, int]:
    """Return the highest priority below `below` that has something queued, by type."""
    tops = {}
    for type_ in types:
        given = {"queue": queue, "type": type_, "priority": below}
        statement = _TOP if type_ is _ANY else _TOP_OF_TYPE
        [top] = connection.execute(statement, given).fetchone()
        if top is not None:
            tops[type_] = top
    return tops
