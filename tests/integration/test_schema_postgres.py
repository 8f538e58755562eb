from __future__ import annotations

from collections.abc import AsyncIterator
from typing import LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from leaseq.adapters.postgres.migrator import migrate
from schema_cases import (
    ACCEPTED,
    LEASED,
    NEW,
    QUEUES_ACCEPTED,
    QUEUES_REFUSED,
    REFUSED,
    Row,
)

BEYOND_PYTHON = ["infinity", "-infinity", "10000-01-01 00:00:00+00", "36869-01-01 00:00:00+00"]

# Enough rows for the planner to have a preference: a third queued, many ended, few leased.
FILL = """
    INSERT INTO tasks (id, queue, type, payload, idempotency_key, run_after)
        SELECT gen_random_uuid(), 'q' || n % 5, 't' || n % 3, '{}', 'k' || n,
            now() + (n - 500) * interval '1 s'
        FROM generate_series(1, 1000) AS n;
    INSERT INTO tasks (id, queue, type, payload, status, finished_at)
        SELECT gen_random_uuid(), 'q' || n % 5, 't', '{}',
            CASE WHEN n % 50 = 0 THEN 'dead' ELSE 'succeeded' END, now() - n * interval '1 s'
        FROM generate_series(1, 2000) AS n;
    INSERT INTO tasks (id, queue, type, payload, status, lease_number, lease_token, lease_owner,
            lease_expires_at)
        SELECT gen_random_uuid(), 'q' || n % 5, 't', '{}', 'leased', 1, 'T', 'worker', now()
        FROM generate_series(1, 50) AS n;
    ANALYZE tasks;
"""


@pytest.fixture
async def tables(postgres_url: str, postgres_schema: str) -> AsyncIterator[psycopg.Connection]:
    await migrate(postgres_url, postgres_schema)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
        yield connection


@pytest.mark.parametrize("row", ACCEPTED)
def test_a_sound_row_is_stored(tables: psycopg.Connection, row: Row) -> None:
    _insert(tables, row)


@pytest.mark.parametrize("row", REFUSED)
def test_a_row_that_contradicts_itself_is_refused(tables: psycopg.Connection, row: Row) -> None:
    with pytest.raises((psycopg.IntegrityError, psycopg.DataError)):
        _insert(tables, row)


@pytest.mark.parametrize("row", QUEUES_ACCEPTED)
def test_a_sound_queue_is_stored(tables: psycopg.Connection, row: Row) -> None:
    _store(tables, "queues", row)


@pytest.mark.parametrize("row", QUEUES_REFUSED)
def test_a_queue_out_of_range_is_refused(tables: psycopg.Connection, row: Row) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        _store(tables, "queues", row)


@pytest.mark.parametrize("instant", BEYOND_PYTHON)
@pytest.mark.parametrize(
    "column",
    ["run_after", "lease_expires_at", "cancel_requested_at", "created_at", "updated_at"],
)
def test_an_instant_that_clients_cannot_read_is_refused(
    tables: psycopg.Connection, column: str, instant: str
) -> None:
    with pytest.raises(psycopg.errors.CheckViolation, match="tasks_times_are_readable"):
        _insert(tables, {**LEASED, column: instant})


def test_a_row_by_hand_is_due_at_once(tables: psycopg.Connection) -> None:
    _insert(tables, NEW)

    due = tables.execute(
        "SELECT count(*) FROM tasks WHERE status = 'queued' AND run_after <= clock_timestamp()"
    )
    assert due.fetchone() == (1,)


def test_a_key_belongs_to_one_task_of_its_queue(tables: psycopg.Connection) -> None:
    _insert(tables, {**NEW, "idempotency_key": "k"})
    _insert(tables, {**NEW, "idempotency_key": "k", "queue": "other"})
    _insert(tables, {**NEW, "idempotency_key": "K"})

    with pytest.raises(psycopg.errors.UniqueViolation):
        _insert(tables, {**NEW, "idempotency_key": "k"})


def test_a_heartbeat_touches_no_index(tables: psycopg.Connection) -> None:
    for _ in range(10):
        _insert(tables, LEASED)

    with tables.transaction():
        tables.execute(
            "UPDATE tasks SET lease_expires_at = lease_expires_at + interval '30 s',"
            " updated_at = clock_timestamp(), version = version + 1"
        )
        hot = tables.execute("SELECT pg_stat_get_xact_tuples_hot_updated('tasks'::regclass)")
        assert hot.fetchone() == (10,)


def test_indexes_serve_one_purpose_each(tables: psycopg.Connection) -> None:
    rows = tables.execute(
        "SELECT indexrelid::regclass::text,"
        " substring(pg_get_indexdef(indexrelid) FROM 'USING btree (.*)')"
        " FROM pg_index WHERE indrelid = 'tasks'::regclass"
    )

    assert dict(rows.fetchall()) == {
        "tasks_pkey": "(id)",
        "tasks_keyed": "(queue, idempotency_key) WHERE (idempotency_key IS NOT NULL)",
        "tasks_claimable": (
            "(queue, type, priority DESC, run_after, id) WHERE (status = 'queued'::text)"
        ),
        "tasks_waiting": ("(queue, ((- priority)), run_after, id) WHERE (status = 'queued'::text)"),
        "tasks_leased": "(queue) WHERE (status = 'leased'::text)",
        "tasks_listed": "(status, queue, id) WHERE (status <> 'leased'::text)",
        "tasks_finished": "(status, finished_at) WHERE (finished_at IS NOT NULL)",
    }


@pytest.mark.parametrize(
    ("question", "index"),
    [
        pytest.param(
            "SELECT id FROM tasks WHERE queue = 'q1' AND type = 't1' AND priority = 0"
            " AND run_after <= now() AND status = 'queued' ORDER BY run_after, id LIMIT 9",
            "tasks_claimable",
            id="the next to claim",
        ),
        pytest.param(
            "SELECT min(run_after) FROM tasks WHERE queue = 'q1' AND -priority = 0"
            " AND status = 'queued' AND run_after > now()",
            "tasks_waiting",
            id="when the next is due",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE queue = 'q1' AND -priority = 0"
            " AND run_after <= now() AND status = 'queued' ORDER BY run_after, id LIMIT 9",
            "tasks_waiting",
            id="the next to claim of any type",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE status = 'leased' AND lease_expires_at <= now() LIMIT 9",
            "tasks_leased",
            id="expired leases",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE status = 'dead' AND queue = 'q1' AND id < gen_random_uuid()"
            " ORDER BY id DESC LIMIT 9",
            "tasks_listed",
            id="a page of the dead",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE status = 'dead' AND finished_at < now()"
            " ORDER BY finished_at LIMIT 9",
            "tasks_finished",
            id="the oldest dead",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE queue = 'q1' AND idempotency_key = 'k'",
            "tasks_keyed",
            id="who holds a key",
        ),
    ],
)
def test_a_question_is_answered_by_its_index_alone(
    tables: psycopg.Connection, question: LiteralString, index: str
) -> None:
    tables.execute(FILL)

    with tables.transaction():
        tables.execute("SET LOCAL enable_seqscan = off")
        plan = "\n".join(line for (line,) in tables.execute("EXPLAIN " + question).fetchall())

    assert index in plan
    assert "Sort" not in plan


def test_the_tables_bring_their_vacuum_settings(tables: psycopg.Connection) -> None:
    rows = tables.execute(
        "SELECT relname, reloptions FROM pg_class"
        " WHERE oid IN ('tasks'::regclass, 'queues'::regclass)"
    )
    options: dict[str, list[str]] = dict(rows.fetchall())

    assert set(options["tasks"]) == {
        "fillfactor=70",
        "autovacuum_vacuum_scale_factor=0.01",
        "autovacuum_vacuum_threshold=1000",
        "autovacuum_vacuum_insert_scale_factor=0.05",
        "autovacuum_analyze_scale_factor=0.02",
        "autovacuum_analyze_threshold=1000",
        "autovacuum_vacuum_cost_limit=2000",
        "vacuum_truncate=false",
    }
    assert set(options["queues"]) == {
        "fillfactor=50",
        "autovacuum_vacuum_scale_factor=0",
        "autovacuum_vacuum_threshold=100",
        "vacuum_truncate=false",
    }


def _insert(connection: psycopg.Connection, row: Row) -> None:
    _store(connection, "tasks", {"id": uuid4(), **row})


def _store(connection: psycopg.Connection, table: str, values: Row) -> None:
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(
        sql.Identifier(table),
        sql.SQL(", ").join(map(sql.Identifier, values)),
        sql.SQL(", ").join(map(sql.Placeholder, values)),
    )
    connection.execute(statement, values)
