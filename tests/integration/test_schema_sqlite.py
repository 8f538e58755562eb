from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta
from uuid import uuid4

import pytest

from leaseq.adapters.sqlite.migrator import migrate
from schema_cases import (
    ACCEPTED,
    FIRST_INSTANT,
    LEASED,
    NEW,
    QUEUES_ACCEPTED,
    QUEUES_REFUSED,
    REFUSED,
    Row,
)


@pytest.fixture
def tables() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        migrate(connection)
        yield connection


@pytest.mark.parametrize("row", ACCEPTED)
def test_a_sound_row_is_stored(tables: sqlite3.Connection, row: Row) -> None:
    _insert(tables, row)


@pytest.mark.parametrize("row", REFUSED)
def test_a_row_that_contradicts_itself_is_refused(tables: sqlite3.Connection, row: Row) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        _insert(tables, row)


@pytest.mark.parametrize("row", QUEUES_ACCEPTED)
def test_a_sound_queue_is_stored(tables: sqlite3.Connection, row: Row) -> None:
    _store(tables, "queues", row)


@pytest.mark.parametrize("row", QUEUES_REFUSED)
def test_a_queue_out_of_range_is_refused(tables: sqlite3.Connection, row: Row) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        _store(tables, "queues", row)


@pytest.mark.parametrize("value", [2**62, -1, 1.5, "noon"])
def test_an_instant_that_clients_cannot_read_is_refused(
    tables: sqlite3.Connection, value: object
) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        _insert(tables, {**NEW, "run_after": value})


def test_a_row_by_hand_is_due_at_once(tables: sqlite3.Connection) -> None:
    _insert(tables, NEW)

    due = tables.execute(
        "SELECT count(*) FROM tasks"
        " WHERE status = 'queued' AND run_after <= CAST(strftime('%s', 'now') AS INTEGER) * 1000000"
    )
    assert due.fetchone() == (1,)


def test_a_key_belongs_to_one_task_of_its_queue(tables: sqlite3.Connection) -> None:
    _insert(tables, {**NEW, "idempotency_key": "k"})
    _insert(tables, {**NEW, "idempotency_key": "k", "queue": "other"})
    _insert(tables, {**NEW, "idempotency_key": "K"})

    with pytest.raises(sqlite3.IntegrityError):
        _insert(tables, {**NEW, "idempotency_key": "k"})


def test_a_heartbeat_does_not_look_at_the_payload(tables: sqlite3.Connection) -> None:
    tables.execute("PRAGMA ignore_check_constraints = on")
    _insert(tables, {**LEASED, "payload": "not JSON"})
    tables.execute("PRAGMA ignore_check_constraints = off")

    beat = tables.execute("UPDATE tasks SET lease_expires_at = lease_expires_at + 1")

    assert beat.rowcount == 1


@pytest.mark.parametrize(
    ("question", "index"),
    [
        pytest.param(
            "SELECT id FROM tasks WHERE queue = 'q' AND type = 't' AND priority = 0"
            " AND run_after <= 1 AND status = 'queued' ORDER BY run_after, id LIMIT 9",
            "tasks_claimable",
            id="the next to claim",
        ),
        pytest.param(
            "SELECT min(run_after) FROM tasks INDEXED BY tasks_waiting"
            " WHERE queue = 'q' AND priority = 0 AND status = 'queued' AND run_after > 1",
            "tasks_waiting",
            id="when the next is due",
        ),
        pytest.param(
            "SELECT id FROM tasks INDEXED BY tasks_waiting WHERE queue = 'q' AND priority = 0"
            " AND run_after <= 1 AND status = 'queued' ORDER BY run_after, id LIMIT 9",
            "tasks_waiting",
            id="the next to claim of any type",
        ),
        pytest.param(
            "SELECT * FROM tasks WHERE status = 'leased' AND lease_expires_at <= 1 LIMIT 9",
            "tasks_listed",
            id="expired leases",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE status = 'dead' AND queue = 'q' AND id < 'x'"
            " ORDER BY id DESC LIMIT 9",
            "tasks_listed",
            id="a page of the dead",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE status = 'dead' AND finished_at < 1"
            " ORDER BY finished_at LIMIT 9",
            "tasks_finished",
            id="the oldest dead",
        ),
        pytest.param(
            "SELECT id FROM tasks WHERE queue = 'q' AND idempotency_key = 'k'",
            "tasks_keyed",
            id="who holds a key",
        ),
    ],
)
def test_a_question_is_answered_by_its_index_alone(
    tables: sqlite3.Connection, question: str, index: str
) -> None:
    plan = str(tables.execute("EXPLAIN QUERY PLAN " + question).fetchall())

    assert index in plan
    assert "TEMP B-TREE" not in plan


def _insert(connection: sqlite3.Connection, row: Row) -> None:
    _store(connection, "tasks", {"id": str(uuid4()), **row})


def _store(connection: sqlite3.Connection, table: str, values: Row) -> None:
    columns = ", ".join(values)
    places = ", ".join("?" * len(values))
    connection.execute(
        f"INSERT INTO {table} ({columns}) VALUES ({places})",  # noqa: S608  names from this file
        [_microseconds(v) if isinstance(v, datetime) else v for v in values.values()],
    )


def _microseconds(instant: datetime) -> int:
    return (instant - FIRST_INSTANT) // timedelta(microseconds=1)
