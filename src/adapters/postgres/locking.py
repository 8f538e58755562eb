"""Parts of statements that change rows only where nobody was faster, and their outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, LiteralString

from ...domain.ids import TaskId
from ...domain.storing import Replaced
from .rows import Row

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

LOCKING: Final[Mapping[str, LiteralString]] = {
    "lock": _LOCK,
    "held": _HELD,
    "outcomes": _OUTCOMES,
}
"""
Parts of a statement upon rows `change (id, old_version, ...)`.

`{lock}` is the query `held` in a WITH, `{held}` the condition of what changes the table `t`,
and `{outcomes}` what is asked at the end.
"""


def outcomes_by_id(rows: Iterable[Row]) -> dict[TaskId, Replaced]:
    """Return what became of each change, from the rows of `{outcomes}`."""
    return {
        task_id: Replaced.DONE if locked else Replaced.BUSY if seen else Replaced.STALE
        for task_id, locked, seen in rows
    }
