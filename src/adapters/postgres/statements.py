"""SQL text made ready for one schema, and the settings under which it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, LiteralString

import attrs
from psycopg import sql

from .rows import COLUMNS, COLUMNS_WITHOUT_PAYLOAD

LEVELS: Final[LiteralString] = """
    RECURSIVE levels (rank, since) AS (
        (
            SELECT -priority, run_after FROM {tasks}
            WHERE status = 'queued' AND queue = {queue}
            ORDER BY -priority, run_after LIMIT 1
        )
        UNION ALL
        SELECT lower.rank, lower.run_after
        FROM levels CROSS JOIN LATERAL (
            SELECT -priority AS rank, run_after FROM {tasks}
            WHERE status = 'queued' AND queue = {queue} AND -priority > levels.rank
            ORDER BY -priority, run_after LIMIT 1
        ) AS lower
    )
"""
"""
Part of a statement: the priorities, negated, at which anything waits in `{queue}`, highest first,
and the earliest `run_after` there. Each step is one look into the index, past all tasks of the
priority before.
"""

_QUEUE_NAMES: Final[LiteralString] = """
    RECURSIVE names (queue) AS (
        (SELECT queue FROM {tasks} WHERE {condition} ORDER BY queue LIMIT 1)
        UNION ALL
        SELECT later.queue
        FROM names CROSS JOIN LATERAL (
            SELECT queue FROM {tasks} WHERE {condition} AND queue > names.queue
            ORDER BY queue LIMIT 1
        ) AS later
    )
"""


def queue_names(condition: LiteralString) -> LiteralString:
    """
    Return a part of a statement: the names of queues that have tasks of which `condition` is true.

    Likewise one look into an index for each, which must have the queue where `condition` leaves
    off.
    """
    return _QUEUE_NAMES.replace("{condition}", condition)


_PARAMETER: Final = re.compile(r"%\((\w+)\)b")

# Which plan is right does not depend on how many rows there are, so it is not left to
# statistics, which are wrong when it matters: after a burst of tasks, before the next ANALYZE. Each
# statement has one index that serves it, is read in the order of that index, and joins row by
# row. (Disabled ways stay possible: a small sort is still done where one is needed.)
PLANNER: Final[Mapping[str, str]] = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_sort": "off",
    "enable_incremental_sort": "off",
    "enable_memoize": "off",
    # A disabled way has an absurd cost, for which PostgreSQL would compile the statement.
    "jit": "off",
}


@attrs.frozen
class Statement:
    """SQL as the server takes it, with `$1` for the first parameter, and what they are called."""

    text: bytes
    names: tuple[str, ...] = ()


@attrs.frozen
class Schema:
    """Where the tables are. Any name will do: nothing depends on the `search_path`."""

    _name: str

    def statement(self, text: LiteralString, **parts: LiteralString) -> Statement:
        """
        Return `text` with `{tasks}`, `{queues}` and the lists of columns filled in.

        Args:
            text: SQL with `%(name)b` for a parameter; its value is to be sent in binary.
            parts: likewise filled in. Each may use those before it.
        """
        known = {
            "tasks": "{tasks}",
            "queues": "{queues}",
            "columns": COLUMNS,
            "columns_without_payload": COLUMNS_WITHOUT_PAYLOAD,
        }
        for part, its_text in parts.items():
            known[part] = its_text.format(**known)
        # Numbered here and once: the driver would do it for each call of a long statement.
        names: dict[str, int] = {}
        numbered = _PARAMETER.sub(
            lambda match: f"${names.setdefault(match[1], len(names) + 1)}", text.format(**known)
        )
        composed = sql.SQL(numbered).format(
            tasks=sql.Identifier(self._name, "tasks"), queues=sql.Identifier(self._name, "queues")
        )
        return Statement(composed.as_bytes(), tuple(names))
