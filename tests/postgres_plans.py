"""What a statement of the PostgreSQL storage would read, by the server's own account."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from psycopg.types.numeric import Int8

from leaseq.adapters.postgres.binary import Bigints, Moments, Texts
from leaseq.adapters.postgres.statements import PLANNER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from leaseq.adapters.postgres.statements import Statement

_TYPES: dict[type[object], str] = {
    Texts: "text[]",
    Bigints: "bigint[]",
    Moments: "timestamptz[]",
    Int8: "bigint",
    datetime: "timestamptz",
}


class Explaining:
    """
    Stands for `Connections`: explains what is asked of it, and takes it back.

    Statements are prepared once, as the storage's connections do, so that a plan made for an empty
    table is the plan for a full one too.
    """

    def __init__(
        self, connection: psycopg.Connection, settings: Mapping[str, str] = PLANNER
    ) -> None:
        # Else the driver would drop all that is prepared at each ROLLBACK.
        connection.prepare_threshold = None
        self._connection = connection
        self._prepared: dict[bytes, str] = {}
        self.plan: dict[str, Any] = {}
        for name, value in settings.items():
            connection.execute("SELECT set_config(%s, %s, false)", (name, value))

    async def fetch(
        self,
        statement: Statement,
        parameters: Mapping[str, object],
        *,
        reserved: bool = False,  # noqa: ARG002
        prepare: bool = True,
    ) -> list[tuple[Any, ...]]:
        values = [parameters[name] for name in statement.names]
        if statement.text not in self._prepared or not prepare:
            self._prepare(statement, values)
        execute = sql.SQL("EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {} ({})").format(
            sql.Identifier(self._prepared[statement.text]),
            sql.SQL(", ").join(sql.Literal(_plain(value)) for value in values),
        )
        with self._connection.transaction(force_rollback=True):
            row = self._connection.execute(execute).fetchone()
        assert row is not None
        self.plan = row[0][0]["Plan"]
        return []

    def _prepare(self, statement: Statement, values: list[object]) -> None:
        name = f"statement_{len(self._prepared)}"
        if statement.text in self._prepared:
            name = self._prepared[statement.text]
            self._connection.execute(sql.SQL("DEALLOCATE {}").format(sql.Identifier(name)))
        types = ", ".join(_TYPES.get(type(value), "text") for value in values)
        text = f"PREPARE {name} ({types}) AS ".encode() + statement.text
        self._connection.execute(text)
        self._prepared[statement.text] = name

    @property
    def pages(self) -> int:
        """How many pages, of tables and indexes, the last statement looked at."""
        return sum(
            node.get(f"Shared {kind} Blocks", 0)
            for node in (self.plan, *_changing(self.plan))
            for kind in ("Hit", "Read")
        )

    @property
    def indexes(self) -> set[str]:
        """Which indexes the last statement read."""
        return {
            node["Index Name"]
            for node in _nodes(self.plan)
            if "Index Name" in node and node["Actual Loops"]
        }

    @property
    def leased(self) -> int:
        """How many rows the last statement changed."""
        [change] = [node for node in _nodes(self.plan) if node["Node Type"] == "ModifyTable"]
        rows: float = change["Plans"][-1]["Actual Rows"]
        return round(rows)


def _plain(value: object) -> Any:
    return list(value) if isinstance(value, Texts | Bigints | Moments) else value


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _changing(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changes that a statement makes beside what it returns: nobody above counts them."""
    for node in plan.get("Plans", ()):
        if node["Node Type"] == "ModifyTable":
            yield node


def fill(
    connection: psycopg.Connection,
    number: int,
    *,
    queue: str,
    type: str = "send",  # noqa: A002
    status: str = "queued",
    priority: int = 0,
    run_after: datetime,
) -> None:
    """Store many tasks, as fast as SQL can."""
    connection.execute(
        """
        INSERT INTO tasks (
            id, queue, type, payload, payload_bytes, status, priority, run_after,
            lease_number, lease_token, lease_owner, lease_expires_at, finished_at
        )
        SELECT gen_random_uuid(), %(queue)s, %(type)s, '{}', 2, %(status)s, %(priority)s,
            %(run_after)s::timestamptz + n * interval '1 microsecond',
            CASE WHEN %(status)s = 'leased' THEN 1 ELSE 0 END,
            CASE WHEN %(status)s = 'leased' THEN 'token' END,
            CASE WHEN %(status)s = 'leased' THEN 'worker' END,
            CASE WHEN %(status)s = 'leased' THEN %(run_after)s::timestamptz END,
            CASE WHEN %(status)s NOT IN ('queued', 'leased') THEN %(run_after)s::timestamptz END
        FROM generate_series(1, %(number)s) AS n
        """,
        {
            "number": number,
            "queue": queue,
            "type": type,
            "status": status,
            "priority": priority,
            "run_after": run_after,
        },
    )
