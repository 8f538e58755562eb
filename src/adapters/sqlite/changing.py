"""
Writes within one write transaction.

What SQLite refuses of one task (a CHECK, a trigger) is undone for that task alone; the
transaction goes on with the others.
"""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Sequence
from datetime import datetime
from typing import Final

import attrs

from ...domain.errors import StorageError, TaskQueueError, UnreadableTaskError
from ...domain.ids import TaskId
from ...domain.storing import Added, Change, PruneRule, Replaced
from ...domain.task import AttemptError, Leased, Task
from ..error_history import to_json
from .faults import REFUSALS
from .rows import (
    COLUMNS,
    WITHOUT_PAYLOAD,
    id_bytes,
    lease_values,
    microseconds,
    readable,
    row,
    row_id,
)

_log: Final = logging.getLogger(__name__)

# Of a taken id and of a taken key alike nothing is written; which it was is read afterwards.
_INSERT: Final = f"""
    INSERT INTO tasks ({", ".join(COLUMNS)}) VALUES ({", ".join(f":{c}" for c in COLUMNS)})
    ON CONFLICT DO NOTHING
"""  # noqa: S608  made of constants

_KNOWN: Final = f"""
    SELECT queue = :queue AND fingerprint = :fingerprint, {WITHOUT_PAYLOAD} FROM tasks
    WHERE id = :id
"""  # noqa: S608  made of constants

_HOLDER: Final = f"""
    SELECT {WITHOUT_PAYLOAD} FROM tasks INDEXED BY tasks_keyed
    WHERE queue = :queue AND idempotency_key = :idempotency_key
"""  # noqa: S608  made of constants

# What a task keeps for life is not written again: to name a column is to have SQLite look at
# its CHECKs and write its indexes.
_KEPT_FOR_LIFE: Final = frozenset(
    {
        "id",
        "queue",
        "type",
        "payload",
        "payload_bytes",
        "fingerprint",
        "idempotency_key",
        "priority",
        "retry_base_us",
        "retry_cap_us",
        "created_at",
    }
)
_CHANGING: Final = [column for column in COLUMNS if column not in _KEPT_FOR_LIFE]

_REPLACE: Final = f"""
    UPDATE tasks SET {", ".join(f"{c} = :{c}" for c in _CHANGING)}
    WHERE id = :id AND version = :old_version
"""  # noqa: S608  made of constants

# Names no column of any index, so that a heartbeat writes the row alone.
_RENEW: Final = """
    UPDATE tasks SET lease_token = :lease_token, lease_owner = :lease_owner,
        lease_expires_at = :lease_expires_at, cancel_requested_at = :cancel_requested_at,
        version = :version, updated_at = :updated_at
    WHERE id = :id AND version = :old_version
"""

_DELETE: Final = "DELETE FROM tasks WHERE id = :id AND version = :version"

# Not of a task that has ended: that stays as it ended.
_QUARANTINE: Final = """
    UPDATE tasks SET status = 'dead', lease_token = NULL, lease_owner = NULL,
        lease_expires_at = NULL, cancel_requested_at = NULL, finished_at = :now,
        updated_at = :now, errors = :errors, last_error = :last_error,
        version = CASE WHEN version BETWEEN 0 AND 4294967296 THEN version + 1 ELSE 1 END
    WHERE id = CAST(:id AS TEXT) AND status NOT IN ('succeeded', 'failed', 'dead', 'cancelled')
"""

_PRUNE: Final = """
    DELETE FROM tasks WHERE rowid IN (
        SELECT rowid FROM tasks INDEXED BY tasks_finished
        WHERE status = :status AND finished_at < :finished_before
        ORDER BY finished_at LIMIT :limit
    )
"""


def add(
    connection: sqlite3.Connection, tasks: Sequence[Task]
) -> list[Added | Task | TaskQueueError]:
    """Store tasks; see `TaskRepository.add`."""
    return [_add(connection, task) for task in tasks]


def _add(connection: sqlite3.Connection, task: Task) -> Added | Task | TaskQueueError:
    values = row(task)
    try:
        stored = connection.execute(_INSERT, values).rowcount
    except REFUSALS as error:
        return StorageError(f"SQLite refuses task {task.id}: {error}")
    if stored:
        return Added.STORED
    known = connection.execute(_KNOWN, values).fetchone()
    if known and known[0]:
        return Added.STORED
    holder = known[1:] if known else connection.execute(_HOLDER, values).fetchone()
    return readable(holder) or UnreadableTaskError(row_id(holder))


def replace(
    connection: sqlite3.Connection, changes: Sequence[Change]
) -> list[Replaced | TaskQueueError]:
    """Compare and swap; see `TaskRepository.replace`."""
    return [_replace(connection, change) for change in changes]


def _replace(connection: sqlite3.Connection, change: Change) -> Replaced | TaskQueueError:
    statement, values = _update(change.old, change.new)
    try:
        done = connection.execute(statement, values | {"old_version": change.old.version}).rowcount
    except REFUSALS as error:
        return StorageError(f"SQLite refuses the change of task {change.new.id}: {error}")
    return Replaced.DONE if done else Replaced.STALE


def _update(old: Task, new: Task) -> tuple[str, dict[str, object]]:
    if not isinstance(old.state, Leased) or not isinstance(new.state, Leased):
        return _REPLACE, row(new)
    renewed = attrs.evolve(old, state=new.state, version=new.version, updated_at=new.updated_at)
    if renewed != new:
        return _REPLACE, row(new)
    return _RENEW, {"id": new.id} | lease_values(new, new.state)


def delete(connection: sqlite3.Connection, tasks: Sequence[Task]) -> list[Replaced]:
    """Compare and remove; see `TaskRepository.delete`."""
    return [_delete(connection, task) for task in tasks]


def _delete(connection: sqlite3.Connection, task: Task) -> Replaced:
    try:
        done = connection.execute(_DELETE, {"id": task.id, "version": task.version}).rowcount
    except REFUSALS as error:
        _log.warning("SQLite refused a deletion", extra={"task": task.id, "why": str(error)})
        return Replaced.BUSY
    return Replaced.DONE if done else Replaced.STALE


def quarantine(
    connection: sqlite3.Connection, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
) -> None:
    """Make tasks dead unread; see `TaskRepository.quarantine`."""
    values = {"now": microseconds(now), "errors": to_json([error]), "last_error": str(error)}
    # Such a row may break rules already, and SQLite looks at them again when it is changed.
    connection.execute("PRAGMA ignore_check_constraints = ON")
    try:
        for task_id in ids:
            _quarantine(connection, task_id, values)
    finally:
        connection.execute("PRAGMA ignore_check_constraints = OFF")


def _quarantine(connection: sqlite3.Connection, task_id: TaskId, values: dict[str, object]) -> None:
    try:
        connection.execute(_QUARANTINE, values | {"id": id_bytes(task_id)})
    except REFUSALS as error:
        _log.error("SQLite refused to set a task aside", extra={"task": task_id, "why": str(error)})


def prune(connection: sqlite3.Connection, rules: Sequence[PruneRule], *, limit: int) -> int:
    """Delete tasks that ended long ago; see `TaskRepository.prune`."""
    pruned = 0
    for rule in rules:
        values = {
            "status": rule.status.value,
            "finished_before": microseconds(rule.finished_before),
            "limit": limit - pruned,
        }
        pruned += connection.execute(_PRUNE, values).rowcount
    return pruned
