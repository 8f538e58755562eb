"""
Leasing due tasks one by one, past rows that the database refuses to change.

A trigger or a check of an operator's may refuse one row. The statement that leases many
fails with it, and the row would stop its queue for ever, as it stays in front.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final, LiteralString

from psycopg.types.numeric import Int8

from ...domain import lifecycle
from ...domain.ids import TaskId
from ...domain.storing import Change, Demand, Found, Replaced
from ...domain.task import Task, is_due
from .binary import Texts
from .changing import Changing
from .connections import Connections
from .finding import Finding
from .statements import LEVELS, NOT_PAUSED, Schema

_log = logging.getLogger(__name__)

# As a claim of any type, without locks. Of some types it walks all of them: slow beside a claim
# that names types, and enough for what an operator will soon have mended.
_NEXT: Final[LiteralString] = """
    WITH {levels}
    SELECT waiting.id::text
    FROM levels CROSS JOIN LATERAL (
        SELECT id FROM {tasks}
        WHERE status = 'queued' AND queue = %(queue)b AND -priority = levels.rank
            AND run_after BETWEEN levels.since AND %(now)b
            AND (cardinality(%(types)b) = 0 OR type = ANY (%(types)b))
        ORDER BY run_after, id
        LIMIT %(limit)b
    ) AS waiting
    WHERE {not_paused}
    LIMIT %(limit)b
"""

_MOST: Final = 50
"""Tasks in one call: each is a statement of its own."""

_REFUSED_AT_MOST: Final = 20
"""Refused rows in front of a queue that are passed over."""


class ClaimingAround:
    """The `claim` of a `TaskRepository`, where one statement does not do."""

    def __init__(
        self, connections: Connections, schema: Schema, *, finding: Finding, changing: Changing
    ) -> None:
        self._connections = connections
        self._finding = finding
        self._changing = changing
        self._next = schema.statement(
            _NEXT, queue="%(queue)b", levels=LEVELS, not_paused=NOT_PAUSED
        )

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """Lease up to 50 due tasks; otherwise as `TaskRepository.claim`."""
        rows = await self._connections.fetch(
            self._next,
            {
                "queue": demand.queue,
                "types": Texts(demand.types),
                "now": now,
                "limit": Int8(min(len(demand.grants), _MOST) + _REFUSED_AT_MOST),
            },
        )
        ids = [TaskId(task_id) for (task_id,) in rows]
        waiting = await self._finding.load(ids, with_payload=False)
        in_order = sorted(waiting.tasks, key=lambda task: ids.index(task.id))
        leased = await self._lease(in_order, demand, now=now)
        whole = await self._finding.load(leased, with_payload=True)
        return Found(
            tasks=tuple(sorted(whole.tasks, key=lambda task: leased.index(task.id))),
            unreadable=waiting.unreadable,
        )

    async def _lease(self, tasks: list[Task], demand: Demand, *, now: datetime) -> list[TaskId]:
        grants = iter(demand.grants[:_MOST])
        grant = next(grants, None)
        leased: list[TaskId] = []
        room = demand.max_bytes
        for task in tasks:
            if grant is None or (leased and task.payload_bytes > room):
                break
            if not is_due(task, now):
                continue
            new = lifecycle.lease(task, grant=grant, now=now)
            [outcome] = await self._changing.replace([Change(old=task, new=new)])
            if outcome is Replaced.DONE:
                leased.append(task.id)
                room -= task.payload_bytes
                grant = next(grants, None)
            elif not isinstance(outcome, Replaced):
                _log.warning(
                    "a due task cannot be leased: the database refuses the change",
                    # Without its traceback: the driver's words may quote the row.
                    extra={"task": task.id, "why": str(outcome)},
                )
        return leased
