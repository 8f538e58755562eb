"""Leasing due tasks, in order, in one statement whose cost does not depend on what else waits."""

from __future__ import annotations

from datetime import datetime
from typing import Final, LiteralString

from psycopg.types.numeric import Int8

from ...domain.ids import TaskType
from ...domain.storing import Demand, Found
from .binary import Moments, Texts
from .connections import Connections
from .rows import found
from .statements import LEVELS, Schema, Statement

# A claim has three parts, whatever it asks for.
#
# `levels` finds the priorities at which anything waits, from the highest down. It is read as far
# as needed, as it comes; so is what follows, up to the LIMIT. `since` is where to begin: what the
# index still has of leased tasks, until the next vacuum, is walked past once and not twice.
#
# `due` reads, level by level, the due tasks from the front of their line, and locks them. Tasks
# scheduled for later stand behind them and are not looked at. SKIP LOCKED: what another
# claim holds at this moment is as good as gone. The lock looks at the row as it is now, and
# leaves it out when somebody was faster. MATERIALIZED: the planner must not run it twice, as a
# second run would skip what the first one locked, and lease more than there are grants.
#
# `granted` puts tasks and grants side by side, the first task with the first grant. It cuts the
# tasks where their payloads become too many, which locked some in vain for a moment.
_LEASE: Final[LiteralString] = """
    counted AS (
        SELECT id, row_number() OVER line AS place, sum(payload_bytes) OVER line AS bytes
        FROM due WINDOW line AS (
            ORDER BY priority DESC, run_after, id ROWS UNBOUNDED PRECEDING
        )
    ),
    granted AS MATERIALIZED (
        SELECT id, token, holder, expires_at, place
        FROM unnest(
            ARRAY(
                SELECT id FROM counted
                WHERE place = 1 OR bytes <= %(max_bytes)b
                ORDER BY place
            ),
            %(tokens)b, %(holders)b, %(expires_at)b
        ) WITH ORDINALITY AS side_by_side (id, token, holder, expires_at, place)
        WHERE id IS NOT NULL
    )
    UPDATE {tasks} AS t SET
        status = 'leased',
        lease_token = granted.token,
        lease_owner = granted.holder,
        lease_expires_at = granted.expires_at,
        lease_number = t.lease_number + 1,
        version = t.version + 1,
        updated_at = %(now)b
    FROM granted
    -- Not `t.id = granted.id`: a planner that believes in an empty table would read all of it,
    -- and look each row up among the granted. From the other side there is no way but the key.
    WHERE t.id = ANY (ARRAY[granted.id])
    RETURNING granted.place, {columns}
"""

_NOT_PAUSED: Final[LiteralString] = """
    NOT EXISTS (SELECT FROM {queues} AS q WHERE q.name = %(queue)b AND q.paused)
"""

# Of any type: one line a priority.
_CLAIM: Final[LiteralString] = """
    WITH {levels},
    due AS MATERIALIZED (
        SELECT waiting.*
        FROM levels CROSS JOIN LATERAL (
            SELECT id, payload_bytes, priority, run_after FROM {tasks}
            WHERE status = 'queued' AND queue = %(queue)b AND -priority = levels.rank
                AND run_after BETWEEN levels.since AND %(now)b
            ORDER BY run_after, id
            LIMIT %(wanted)b
            FOR UPDATE SKIP LOCKED
        ) AS waiting
        WHERE {not_paused}
        LIMIT %(wanted)b
    ),
    {lease}
"""

# Of some types: the lines of one priority, one for each type, are merged as they are read, so that
# nothing of other types is. A merged row cannot be locked where it was read; it is looked up again,
# and its version tells whether it still stands in line. (By its status, the planner could
# take an index that holds all queued tasks for one that holds next to none.)
_CLAIM_TYPES: Final[LiteralString] = """
    WITH RECURSIVE levels (priority, since) AS (
        (
            SELECT head.priority, head.run_after
            FROM unnest(%(types)b) AS wanted (type) CROSS JOIN LATERAL (
                SELECT priority, run_after FROM {tasks}
                WHERE status = 'queued' AND queue = %(queue)b AND type = wanted.type
                ORDER BY priority DESC, run_after LIMIT 1
            ) AS head
            ORDER BY head.priority DESC, head.run_after LIMIT 1
        )
        UNION ALL
        SELECT lower.priority, lower.run_after
        FROM levels CROSS JOIN LATERAL (
            SELECT head.priority, head.run_after
            FROM unnest(%(types)b) AS wanted (type) CROSS JOIN LATERAL (
                SELECT priority, run_after FROM {tasks}
                WHERE status = 'queued' AND queue = %(queue)b AND type = wanted.type
                    AND priority < levels.priority
                ORDER BY priority DESC, run_after LIMIT 1
            ) AS head
            ORDER BY head.priority DESC, head.run_after LIMIT 1
        ) AS lower
    ),
    due AS MATERIALIZED (
        SELECT held.*
        FROM levels CROSS JOIN LATERAL (
            SELECT id, version FROM ({lines}) AS line ORDER BY run_after, id
        ) AS merged CROSS JOIN LATERAL (
            SELECT id, payload_bytes, priority, run_after FROM {tasks}
            WHERE id = merged.id AND version = merged.version
            FOR UPDATE SKIP LOCKED
        ) AS held
        WHERE {not_paused}
        LIMIT %(wanted)b
    ),
    {lease}
"""
_LINE: Final[LiteralString] = """
    (
        SELECT id, version, run_after FROM {tasks}
        WHERE status = 'queued' AND queue = %(queue)b AND type = (%(types)b)[{number}]
            AND priority = levels.priority AND run_after BETWEEN levels.since AND %(now)b
        ORDER BY run_after, id
    )
"""


class Claiming:
    """The `claim` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._schema = schema
        self._claim = schema.statement(
            _CLAIM, queue="%(queue)b", levels=LEVELS, not_paused=_NOT_PAUSED, lease=_LEASE
        )
        self._claims_of_types: dict[int, Statement] = {}

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease due tasks; see `TaskRepository.claim`."""
        grants = demand.grants
        parameters: dict[str, object] = {
            "queue": demand.queue,
            "now": now,
            "wanted": Int8(len(grants)),
            "max_bytes": Int8(demand.max_bytes),
            "tokens": Texts(grant.token for grant in grants),
            "holders": Texts(grant.holder for grant in grants),
            "expires_at": Moments(grant.expires_at for grant in grants),
        }
        types = tuple(dict.fromkeys(demand.types))
        if types:
            parameters["types"] = Texts(types)
        rows = await self._connections.fetch(self._statement(types), parameters)
        # RETURNING promises no order.
        return found(row[1:] for row in sorted(rows, key=_place))

    def _statement(self, types: tuple[TaskType, ...]) -> Statement:
        if not types:
            return self._claim
        # For as many types as the next power of two; a type that is NULL has no tasks. So
        # a connection prepares few statements, whatever its workers ask for.
        lines = 1 << (len(types) - 1).bit_length()
        if lines not in self._claims_of_types:
            self._claims_of_types[lines] = self._schema.statement(
                _CLAIM_TYPES,
                lines=" UNION ALL ".join(
                    _LINE.replace("{number}", str(number + 1)) for number in range(lines)
                ),
                not_paused=_NOT_PAUSED,
                lease=_LEASE,
            )
        return self._claims_of_types[lines]


def _place(row: tuple[int, ...]) -> int:
    return row[0]
