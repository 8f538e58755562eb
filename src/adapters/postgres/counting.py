"""How full the queues are."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Final, LiteralString

from psycopg.types.numeric import Int8

from ...domain import contract
from ...domain.ids import QueueName
from ...domain.limits import COUNTED_EXACTLY
from ...domain.storing import QueueDepths
from ...domain.task import Status
from ...domain.views import Depth
from .binary import UNREADABLE_MOMENT, Texts
from .connections import Connections
from .statements import LEVELS, Schema, queue_names

# Counts stop where nobody reads on. The oldest due stands in front of one of the lines of
# its queue, of which there is one for each priority.
_STATS: Final[LiteralString] = """
    SELECT wanted.status, named.queue,
        (
            SELECT count(*) FROM (
                SELECT FROM {tasks}
                WHERE status = wanted.status AND status <> 'leased' AND queue = named.queue
                LIMIT %(most)b
            ) AS counted
        ),
        CASE WHEN wanted.status = 'queued' THEN (
            WITH {levels}
            SELECT min(since) FROM levels WHERE since <= %(now)b
        ) END
    FROM unnest(%(statuses)b) AS wanted (status) CROSS JOIN LATERAL (
        WITH {names}
        SELECT queue FROM names
    ) AS named
    UNION ALL
    SELECT 'leased', named.queue,
        (
            SELECT count(*) FROM (
                SELECT FROM {tasks} WHERE status = 'leased' AND queue = named.queue
                LIMIT %(most)b
            ) AS counted
        ),
        NULL
    FROM (
        WITH {leased_names}
        SELECT queue FROM names
    ) AS named
"""


class Counting:
    """The `stats` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._stats = schema.statement(
            _STATS,
            queue="named.queue",
            levels=LEVELS,
            names=queue_names("status = wanted.status AND status <> 'leased'"),
            leased_names=queue_names("status = 'leased'"),
        )

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is; see `TaskRepository.stats`."""
        rows = await self._connections.fetch(
            self._stats,
            {
                "now": now,
                "most": Int8(COUNTED_EXACTLY + 1),
                "statuses": Texts(status.value for status in Status if status != Status.LEASED),
            },
        )
        depths: defaultdict[QueueName, dict[Status, Depth]] = defaultdict(dict)
        since: dict[QueueName, datetime] = {}
        for status, queue, count, oldest_due in rows:
            depths[queue][Status(status)] = contract.depth(count)
            if oldest_due is not None and oldest_due is not UNREADABLE_MOMENT:
                since[queue] = oldest_due
        return [
            QueueDepths(queue=queue, depths=depths[queue], oldest_due_since=since.get(queue))
            for queue in sorted(depths)
        ]
