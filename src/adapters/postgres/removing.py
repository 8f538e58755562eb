"""Removing tasks that have ended, and setting rows aside that cannot be read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Final, LiteralString

import psycopg
from psycopg.types.numeric import Int8

from ...domain.ids import TaskId
from ...domain.storing import PruneRule, Replaced
from ...domain.task import AttemptError, Task
from ..error_history import to_json
from .binary import Bigints, Moments, Texts
from .connections import Connections
from .faults import DRIVER_ERRORS, is_refusal, storage_error
from .finding import Finding
from .locking import LOCKING, outcomes_by_id
from .statements import Schema

_log = logging.getLogger(__name__)

_DELETE: Final[LiteralString] = """
    WITH change AS (
        SELECT * FROM unnest(%(ids)b, %(old_versions)b) AS given (id, old_version)
    ),
    {lock},
    deleted AS (
        DELETE FROM {tasks} AS t USING held WHERE {held}
    )
    {outcomes}
"""

# The oldest first, in one short transaction. SKIP LOCKED: another pruner takes others. A task
# that has not ended has no `finished_at`, so none is taken, whatever a rule says.
_OLD: Final[LiteralString] = """
    SELECT finished.id
    FROM unnest(%(statuses)b, %(finished_before)b) AS rule (status, finished_before)
    CROSS JOIN LATERAL (
        SELECT id FROM {tasks}
        WHERE status = rule.status AND finished_at < rule.finished_before
        ORDER BY finished_at LIMIT %(limit)b
        FOR UPDATE SKIP LOCKED
    ) AS finished
    LIMIT %(limit)b
"""
_PRUNE: Final[LiteralString] = """
    WITH old AS MATERIALIZED ({old}),
    pruned AS (
        DELETE FROM {tasks} AS t USING old WHERE t.id = ANY (ARRAY[old.id]) RETURNING t.id
    )
    SELECT count(*) FROM pruned
"""

# Nothing of the row is read, and what may have made it unreadable is mended as far as it can be,
# so that operators can see the task, and requeue it. Not of a task that has ended: that stays as it
# ended.
_QUARANTINE: Final[LiteralString] = """
    WITH held AS MATERIALIZED (
        SELECT stored.id FROM unnest(%(ids)b) AS given (id) CROSS JOIN LATERAL (
            SELECT id FROM {tasks} AS current
            WHERE current.id = given.id::uuid
                AND current.status NOT IN ('succeeded', 'failed', 'dead', 'cancelled')
            FOR UPDATE
        ) AS stored
    )
    UPDATE {tasks} AS t SET
        status = 'dead',
        lease_token = NULL,
        lease_owner = NULL,
        lease_expires_at = NULL,
        cancel_requested_at = NULL,
        settled_token = NULL,
        settled_as = NULL,
        finished_at = %(now)b,
        updated_at = %(now)b,
        run_after = CASE WHEN t.run_after BETWEEN '1970-01-01 00:00+00' AND '9998-12-31 00:00+00'
            THEN t.run_after ELSE %(now)b END,
        created_at = CASE WHEN t.created_at BETWEEN '1970-01-01 00:00+00' AND '9998-12-31 00:00+00'
            THEN t.created_at ELSE %(now)b END,
        retry_base_us = LEAST(GREATEST(t.retry_base_us, 1000), 86400000000),
        retry_cap_us = LEAST(
            GREATEST(t.retry_cap_us, LEAST(GREATEST(t.retry_base_us, 1000), 86400000000)),
            2592000000000
        ),
        last_error = %(last_error)b,
        errors = %(errors)b::jsonb,
        result = NULL,
        version = t.version + 1
    FROM held WHERE t.id = ANY (ARRAY[held.id])
    RETURNING t.id
"""

_AROUND: Final = 100
"""Tasks that are pruned one by one where the database refuses to delete one of them."""


class Removing:
    """`delete`, `quarantine` and `prune` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema, *, finding: Finding) -> None:
        self._connections = connections
        self._finding = finding
        self._delete = schema.statement(_DELETE, **LOCKING)
        self._quarantine = schema.statement(_QUARANTINE)
        self._old = schema.statement("SELECT old.id::text FROM ({old}) AS old", old=_OLD)
        self._prune = schema.statement(_PRUNE, old=_OLD)

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """
        Compare and remove; see `TaskRepository.delete`.

        A row that the database refuses to delete is BUSY, and logged.
        """
        ordered = sorted(tasks, key=lambda task: task.id)
        parameters = {
            "ids": Texts(task.id for task in ordered),
            "old_versions": Bigints(task.version for task in ordered),
        }
        try:
            rows = await self._connections.fetch(self._delete, parameters)
        except DRIVER_ERRORS as error:
            if not is_refusal(error):
                raise
            if len(tasks) == 1:
                _log_refusal("a task cannot be deleted", tasks[0].id, error)
                return [Replaced.BUSY]
        else:
            outcomes = outcomes_by_id(rows)
            return [outcomes[task.id] for task in tasks]
        return [outcome for task in tasks for outcome in await self.delete([task])]

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """
        Make rows dead unread; see `TaskRepository.quarantine`.

        A row that the database refuses to change is left, and logged.
        """
        parameters = {
            "ids": Texts(sorted(ids)),
            "now": now,
            "last_error": str(error),
            "errors": to_json([error]),
        }
        try:
            await self._connections.fetch(self._quarantine, parameters)
        except DRIVER_ERRORS as refusal:
            if not is_refusal(refusal):
                raise
            if len(ids) == 1:
                _log_refusal("a row that cannot be read cannot be set aside", ids[0], refusal)
                return
        else:
            return
        for task_id in ids:
            await self.quarantine([task_id], error, now=now)

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago; see `TaskRepository.prune`."""
        parameters = {
            "statuses": Texts(rule.status.value for rule in rules),
            "finished_before": Moments(rule.finished_before for rule in rules),
        }
        try:
            rows = await self._connections.fetch(self._prune, {**parameters, "limit": Int8(limit)})
        except DRIVER_ERRORS as error:
            if not is_refusal(error):
                raise
        else:
            count: int = rows[0][0]
            return count
        few = Int8(min(limit, _AROUND))
        ids = await self._connections.fetch(self._old, {**parameters, "limit": few})
        old = await self._finding.load([TaskId(row[0]) for row in ids], with_payload=False)
        return (await self.delete(old.tasks)).count(Replaced.DONE)


def _log_refusal(
    message: str, task_id: TaskId, refusal: psycopg.Error | UnicodeEncodeError
) -> None:
    # Without its traceback: the driver's words may quote the row.
    _log.warning(message, extra={"task": task_id, "why": str(storage_error(refusal))})
