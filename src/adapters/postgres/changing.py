"""Changing and removing tasks, each only if nobody was faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, LiteralString

import attrs
from psycopg.types.numeric import Int8

from ...domain.errors import TaskQueueError
from ...domain.ids import TaskId
from ...domain.storing import Change, PruneRule, Replaced
from ...domain.task import AttemptError, Leased, Task
from ..error_history import to_json
from .binary import Bigints, Moments, Texts
from .connections import Connections
from .faults import DRIVER_ERRORS, is_refusal, storage_error
from .rows import renewals, states
from .statements import Schema, Statement

# What each statement does with the rows that it was given: it locks those that have the version
# asked for, one after the other in the order of their ids, so that two batches cannot wait for
# each other. SKIP LOCKED: nobody waits at all. Of a row that could not be locked, `seen` tells
# whether it has that version nevertheless: then somebody holds it at this moment.
#
# Nothing here says `status = 'leased'`. With old statistics the planner would believe that few
# tasks are leased, and read them all for each one of the batch.
_LOCK: Final[LiteralString] = """
    held AS MATERIALIZED (
        SELECT change.*, stored.id IS NOT NULL AS locked,
            stored.id IS NULL AND EXISTS (
                SELECT FROM {tasks} AS seen
                WHERE seen.id = change.id::uuid AND seen.version = change.old_version
            ) AS seen
        FROM change LEFT JOIN LATERAL (
            SELECT id FROM {tasks} AS current
            WHERE current.id = change.id::uuid AND current.version = change.old_version
            FOR UPDATE SKIP LOCKED
        ) AS stored ON true
    )
"""

# What was locked is changed for certain: it is what this statement sees, and nobody else can.
_OUTCOMES: Final[LiteralString] = "SELECT id, locked, seen FROM held"

# `= ANY` as in a claim: never read the table and look each row up among the changes.
_HELD: Final[LiteralString] = "t.id = ANY (ARRAY[held.id::uuid]) AND held.locked"

# A heartbeat, or a request to cancel. It sets no column that an index holds, and none that may be
# large, so that the new version of the row finds room beside the old one (a HOT update).
_RENEW: Final[LiteralString] = """
    WITH change AS (
        SELECT * FROM unnest(
            %(ids)b, %(old_versions)b, %(versions)b, %(expires_at)b, %(cancel_requested_at)b,
            %(updated_at)b
        ) AS given (id, old_version, version, expires_at, cancel_requested_at, updated_at)
    ),
    {lock},
    renewed AS (
        UPDATE {tasks} AS t SET
            lease_expires_at = held.expires_at,
            cancel_requested_at = held.cancel_requested_at,
            version = held.version,
            updated_at = held.updated_at
        FROM held WHERE {held}
    )
    {outcomes}
"""

# Errors are NULL where they stay as they are: to set them is to write up to 160 kB anew.
_REPLACE: Final[LiteralString] = """
    WITH change AS (
        SELECT * FROM unnest(
            %(ids)b, %(old_versions)b, %(versions)b, %(statuses)b, %(run_after)b, %(attempts)b,
            %(releases)b, %(lease_numbers)b, %(tokens)b, %(holders)b, %(expires_at)b,
            %(cancel_requested_at)b, %(settled_tokens)b, %(settled_as)b, %(updated_at)b,
            %(finished_at)b, %(last_errors)b, %(errors)b, %(results)b
        ) AS given (
            id, old_version, version, status, run_after, attempts,
            releases, lease_number, token, holder, expires_at,
            cancel_requested_at, settled_token, settled_as, updated_at,
            finished_at, last_error, errors, result
        )
    ),
    {lock},
    replaced AS (
        UPDATE {tasks} AS t SET
            version = held.version,
            status = held.status,
            run_after = held.run_after,
            attempts = held.attempts,
            releases = held.releases,
            lease_number = held.lease_number,
            lease_token = held.token,
            lease_owner = held.holder,
            lease_expires_at = held.expires_at,
            cancel_requested_at = held.cancel_requested_at,
            settled_token = held.settled_token,
            settled_as = held.settled_as,
            updated_at = held.updated_at,
            finished_at = held.finished_at,
            last_error = CASE WHEN held.errors IS NULL THEN t.last_error ELSE held.last_error END,
            errors = COALESCE(held.errors::jsonb, t.errors),
            result = held.result::jsonb
        FROM held WHERE {held}
    )
    {outcomes}
"""

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
_PRUNE: Final[LiteralString] = """
    WITH old AS MATERIALIZED (
        SELECT finished.id
        FROM unnest(%(statuses)b, %(finished_before)b) AS rule (status, finished_before)
        CROSS JOIN LATERAL (
            SELECT id FROM {tasks}
            WHERE status = rule.status AND finished_at < rule.finished_before
            ORDER BY finished_at LIMIT %(limit)b
            FOR UPDATE SKIP LOCKED
        ) AS finished
        LIMIT %(limit)b
    ),
    pruned AS (
        DELETE FROM {tasks} AS t USING old WHERE t.id = ANY (ARRAY[old.id]) RETURNING t.id
    )
    SELECT count(*) FROM pruned
"""

# Nothing of the row is read, and what may have made it unreadable is mended as far as it can be,
# so that operators can see the task, and requeue it.
_QUARANTINE: Final[LiteralString] = """
    WITH held AS MATERIALIZED (
        SELECT stored.id FROM unnest(%(ids)b) AS given (id) CROSS JOIN LATERAL (
            SELECT id FROM {tasks} AS current WHERE current.id = given.id::uuid FOR UPDATE
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


class Changing:
    """`replace`, `delete`, `quarantine` and `prune` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        parts: dict[str, LiteralString] = {"lock": _LOCK, "held": _HELD, "outcomes": _OUTCOMES}
        self._renew = schema.statement(_RENEW, **parts)
        self._replace = schema.statement(_REPLACE, **parts)
        self._delete = schema.statement(_DELETE, **parts)
        self._quarantine = schema.statement(_QUARANTINE)
        self._prune = schema.statement(_PRUNE)

    async def replace(self, changes: Sequence[Change]) -> list[Replaced | TaskQueueError]:
        """Compare and swap; see `TaskRepository.replace`."""
        renewals = [change for change in changes if _only_renews(change)]
        others = [change for change in changes if not _only_renews(change)]
        outcomes: dict[TaskId, Replaced | TaskQueueError] = {}
        for statement, some, parameters in (
            (self._renew, renewals, _renewal_parameters),
            (self._replace, others, _parameters),
        ):
            if some:
                outcomes |= await self._store(statement, sorted(some, key=_id), parameters)
        return [outcomes[_id(change)] for change in changes]

    async def _store(
        self, statement: Statement, changes: Sequence[Change], parameters: _Parameters
    ) -> Mapping[TaskId, Replaced | TaskQueueError]:
        try:
            return await self._outcomes(statement, parameters(changes))
        except DRIVER_ERRORS as error:
            if not is_refusal(error):
                raise
            if len(changes) == 1:
                return {_id(changes[0]): storage_error(error)}
        outcomes: dict[TaskId, Replaced | TaskQueueError] = {}
        for change in changes:
            outcomes |= await self._store(statement, [change], parameters)
        return outcomes

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """Compare and remove; see `TaskRepository.delete`."""
        if not tasks:
            return []
        ordered = sorted(tasks, key=lambda task: task.id)
        outcomes = await self._outcomes(
            self._delete,
            {
                "ids": Texts(task.id for task in ordered),
                "old_versions": Bigints(task.version for task in ordered),
            },
        )
        return [outcomes[task.id] for task in tasks]

    async def _outcomes(
        self, statement: Statement, parameters: Mapping[str, object]
    ) -> dict[TaskId, Replaced]:
        rows = await self._connections.fetch(statement, parameters, reserved=True)
        return {
            task_id: Replaced.DONE if locked else Replaced.BUSY if seen else Replaced.STALE
            for task_id, locked, seen in rows
        }

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make rows dead unread; see `TaskRepository.quarantine`."""
        await self._connections.fetch(
            self._quarantine,
            {
                "ids": Texts(sorted(ids)),
                "now": now,
                "last_error": str(error),
                "errors": to_json([error]),
            },
        )

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """Delete tasks that ended long ago; see `TaskRepository.prune`."""
        [(pruned,)] = await self._connections.fetch(
            self._prune,
            {
                "statuses": Texts(rule.status.value for rule in rules),
                "finished_before": Moments(rule.finished_before for rule in rules),
                "limit": Int8(limit),
            },
        )
        count: int = pruned
        return count


_Parameters = Callable[[Sequence[Change]], Mapping[str, object]]


def _id(change: Change) -> TaskId:
    return change.old.id


def _only_renews(change: Change) -> bool:
    """Whether only the times of a lease are other than before."""
    old, new = change.old, change.new
    if not (isinstance(old.state, Leased) and isinstance(new.state, Leased)):
        return False
    times = attrs.evolve(old.state.lease, expires_at=new.state.lease.expires_at)
    return new.state.lease == times and new == attrs.evolve(
        old, state=new.state, version=new.version, updated_at=new.updated_at, payload=new.payload
    )


def _renewal_parameters(changes: Sequence[Change]) -> Mapping[str, object]:
    return {
        **renewals([change.new for change in changes]),
        "old_versions": Bigints(change.old.version for change in changes),
    }


def _parameters(changes: Sequence[Change]) -> Mapping[str, object]:
    new_errors = [None if c.new.errors == c.old.errors else c.new for c in changes]
    return {
        **states([change.new for change in changes]),
        "old_versions": Bigints(change.old.version for change in changes),
        "last_errors": Texts(None if new is None else new.last_error for new in new_errors),
        "errors": Texts(None if new is None else to_json(new.errors) for new in new_errors),
    }
