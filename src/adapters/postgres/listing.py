"""Pages of tasks, for operators."""

from __future__ import annotations

from typing import Final, LiteralString

from psycopg.errors import QueryCanceled
from psycopg.types.numeric import Int8

from ...domain.errors import StorageError
from ...domain.storing import Found, Selection
from ...domain.task import Status
from .binary import Texts
from .connections import Connections
from .rows import found
from .statements import Schema, queue_names

# A page: the ids first, then the rows, so that no payload is unpacked in vain.
_PAGE: Final[LiteralString] = """
    SELECT {page_columns}
    FROM picked CROSS JOIN LATERAL (
        SELECT * FROM {tasks} AS stored WHERE stored.id = picked.id LIMIT 1
    ) AS t
    ORDER BY t.id DESC
"""
_NARROWED: Final[LiteralString] = """
    id < %(before)b::uuid AND (%(type)b::text IS NULL OR type = %(type)b::text)
"""

_PICK_ANY: Final[LiteralString] = """
    WITH picked AS MATERIALIZED (
        SELECT id FROM {tasks} WHERE {narrowed}
        ORDER BY id DESC LIMIT %(limit)b
    )
    {page}
"""

# A key without its queue is looked for in each queue that has keys.
_PICK_KEY: Final[LiteralString] = """
    WITH picked AS MATERIALIZED (
        SELECT holder.id
        FROM (
            WITH {names}
            SELECT queue FROM names WHERE %(queue)b::text IS NULL
            UNION ALL
            SELECT %(queue)b::text
        ) AS named CROSS JOIN LATERAL (
            SELECT id, status FROM {tasks}
            WHERE queue = named.queue AND idempotency_key = %(key)b AND {narrowed}
            LIMIT 1
        ) AS holder
        WHERE holder.status = ANY (%(statuses)b)
        ORDER BY holder.id DESC LIMIT %(limit)b
    )
    {page}
"""

# For each status and queue the first of its line; leased tasks are in no line, and few enough
# to be sorted (OFFSET 0, lest the planner walk all tasks by id to find them in order).
_PICK_STATUS: Final[LiteralString] = """
    WITH picked AS MATERIALIZED (
        SELECT id FROM (
            SELECT page.id
            FROM unnest(%(statuses)b) AS wanted (status) CROSS JOIN LATERAL (
                WITH {names}
                SELECT queue FROM names WHERE %(queue)b::text IS NULL
                UNION ALL
                SELECT %(queue)b::text
            ) AS named CROSS JOIN LATERAL (
                SELECT id FROM {tasks}
                WHERE status = wanted.status AND status <> 'leased' AND queue = named.queue
                    AND {narrowed}
                ORDER BY id DESC LIMIT %(limit)b
            ) AS page
            UNION ALL
            SELECT id FROM (
                SELECT id FROM {tasks}
                WHERE status = 'leased' AND 'leased' = ANY (%(statuses)b)
                    AND (%(queue)b::text IS NULL OR queue = %(queue)b::text)
                    AND {narrowed}
                OFFSET 0
            ) AS leased
        ) AS candidate
        ORDER BY id DESC LIMIT %(limit)b
    )
    {page}
"""

_AFTER_ALL_IDS: Final = "ffffffff-ffff-ffff-ffff-ffffffffffff"


class Listing:
    """The `search` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._picks = {
            (pick, with_payload): schema.statement(
                pick,
                names=names,
                narrowed=_NARROWED,
                page_columns="{columns}" if with_payload else "{columns_without_payload}",
                page=_PAGE,
            )
            for pick, names in (
                (_PICK_ANY, ""),
                (_PICK_KEY, queue_names("idempotency_key IS NOT NULL")),
                (_PICK_STATUS, queue_names("status = wanted.status AND status <> 'leased'")),
            )
            for with_payload in (False, True)
        }

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """
        Return tasks by what they are; see `TaskRepository.search`.

        A type is in no index that has tasks by id: those of other types are walked.

        Raises:
            StorageError: too many tasks had to be walked for the time that a statement has.
        """
        statement = self._picks[_pick(selection), with_payload]
        parameters = {
            "queue": selection.queue,
            "type": selection.type,
            "statuses": Texts(status.value for status in selection.statuses or Status),
            "key": selection.idempotency_key,
            "before": selection.before or _AFTER_ALL_IDS,
            "limit": Int8(limit),
        }
        try:
            # Planned anew each time, for the tables as they are: there are two ways to walk by id.
            return found(await self._connections.fetch(statement, parameters, prepare=False))
        except QueryCanceled as error:
            raise StorageError(
                "there is too much to read; ask for less, such as one queue or status"
            ) from error


def _pick(selection: Selection) -> LiteralString:
    if selection.idempotency_key is not None:
        return _PICK_KEY
    if selection.queue is not None or selection.statuses:
        return _PICK_STATUS
    return _PICK_ANY
