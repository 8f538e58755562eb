from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from leaseq.adapters.migrations import (
    MigrationRefusedError,
    SchemaOutdatedError,
    SchemaTooNewError,
)
from leaseq.adapters.sqlite.migrator import ensure_schema, migrate, schema_version
from leaseq.domain.errors import StorageUnavailableError

ALL = ["0001_create_tasks"]

MIGRATE = """
import sqlite3, sys
from leaseq.adapters.sqlite.migrator import migrate

connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
sys.stdin.readline()
print(len(migrate(connection)))
"""

# Says so in the middle of the migration, and waits for ever.
STOP_AT_INDEX = """
import sqlite3, sys, time
from leaseq.adapters.sqlite.migrator import migrate

def stop(statement):
    if "CREATE UNIQUE INDEX" in statement:
        print("stopped", flush=True)
        time.sleep(600)

connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA journal_mode = " + sys.argv[2])
connection.set_trace_callback(stop)
migrate(connection)
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "leaseq.db"


def test_an_empty_file_gets_tables_and_indexes(file: Path) -> None:
    with closing(_connect(file)) as connection:
        applied = migrate(connection)

        assert applied == ALL
        assert schema_version(connection) == len(ALL)
        assert _names(connection) == {
            "leaseq_migrations",
            "queues",
            "tasks",
            "tasks_claimable",
            "tasks_finished",
            "tasks_keyed",
            "tasks_listed",
            "tasks_waiting",
        }


def test_nothing_is_applied_twice(file: Path) -> None:
    with closing(_connect(file)) as connection:
        migrate(connection)

        assert migrate(connection) == []
        assert not connection.in_transaction


def test_an_empty_file_has_no_version(file: Path) -> None:
    with closing(_connect(file)) as connection:
        assert schema_version(connection) is None
        assert _names(connection) == set()


def test_starting_makes_the_schema_and_then_leaves_it_alone(file: Path) -> None:
    with closing(_connect(file)) as connection:
        ensure_schema(connection)
        ensure_schema(connection)

        assert schema_version(connection) == len(ALL)


def test_rows_may_come_in_any_shape(file: Path) -> None:
    with closing(_connect(file)) as connection:
        connection.row_factory = lambda _, row: {"row": row}

        assert migrate(connection) == ALL
        assert schema_version(connection) == len(ALL)


@pytest.mark.parametrize("run", range(20))
@pytest.mark.parametrize("action", [migrate, ensure_schema])
def test_of_eight_at_once_none_fails(
    file: Path, action: Callable[[sqlite3.Connection], object], run: int
) -> None:
    def act() -> None:
        with closing(_connect(file)) as connection:
            action(connection)

    with ThreadPoolExecutor(8) as threads:
        acts = [threads.submit(act) for _ in range(8)]
    errors = [done.exception() for done in acts]

    assert errors == [None] * 8, f"run {run}"
    with closing(_connect(file)) as connection:
        assert schema_version(connection) == len(ALL)


def test_of_eight_processes_at_once_one_applies_and_none_fails(file: Path) -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", MIGRATE, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(8)
    ]

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = sorted(process.communicate(timeout=50)[0].strip() for process in processes)

    assert counts == ["0"] * 7 + [str(len(ALL))]


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_a_killed_migration_leaves_nothing_behind(file: Path, journal: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOP_AT_INDEX, str(file), journal],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "stopped\n"
        process.kill()

    with closing(_connect(file)) as connection:
        assert _names(connection) == set()
        assert migrate(connection) == ALL


def test_a_refused_migration_leaves_nothing_behind(file: Path) -> None:
    with closing(_connect(file)) as connection:
        connection.execute("CREATE TABLE queues (name)")

        with pytest.raises(MigrationRefusedError, match="table queues already exists"):
            migrate(connection)

        assert _names(connection) == {"queues"}
        assert not connection.in_transaction


def test_a_newer_schema_is_refused(file: Path) -> None:
    with closing(_connect(file)) as connection:
        migrate(connection)
        connection.execute("INSERT INTO leaseq_migrations VALUES (9999, '9999_come_later', 0)")

        with pytest.raises(SchemaTooNewError):
            migrate(connection)
        with pytest.raises(SchemaTooNewError):
            ensure_schema(connection)

        assert not connection.in_transaction


def test_starting_refuses_to_change_a_populated_schema(file: Path) -> None:
    with closing(_connect(file)) as connection:
        migrate(connection)
        connection.execute("UPDATE leaseq_migrations SET version = 0")

        with pytest.raises(SchemaOutdatedError, match="leaseq migrate"):
            ensure_schema(connection)


def test_a_file_that_others_write_may_be_free_later(file: Path) -> None:
    with closing(_connect(file)) as other, closing(_connect(file, timeout=0.01)) as connection:
        other.execute("BEGIN IMMEDIATE")

        with pytest.raises(StorageUnavailableError, match="locked"):
            migrate(connection)


def test_a_file_that_is_no_database_is_refused(file: Path) -> None:
    file.write_text("this is not a database, however long it may be" * 10)

    with closing(_connect(file)) as connection, pytest.raises(MigrationRefusedError):
        migrate(connection)


def _connect(file: Path, *, timeout: float = 30) -> sqlite3.Connection:
    return sqlite3.connect(file, isolation_level=None, timeout=timeout)


def _names(connection: sqlite3.Connection) -> set[str]:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite%'")
    return {name for (name,) in rows}
