"""
Makes and changes the schema of an SQLite file, safely for any number of processes at once.

All of a run is one transaction, that of the one process which may write. Connections are
in autocommit mode (`isolation_level=None`), with a `timeout` for the wait on other writers.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ...domain.errors import StorageUnavailableError
from ..migrations import (
    Migration,
    MigrationRefusedError,
    pending,
    read_migrations,
)

_OLDEST_SQLITE = (3, 37)  # the first with STRICT tables

_VERSIONS_EXIST = "SELECT count(*) FROM sqlite_schema WHERE name = 'leaseq_migrations'"
_CREATE_VERSIONS = """
    CREATE TABLE leaseq_migrations (
        version INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        applied_at INTEGER DEFAULT (CAST(strftime('%s', 'now') AS INTEGER) * 1000000) NOT NULL
    ) STRICT
"""
_RECORD = "INSERT INTO leaseq_migrations (version, name) VALUES (?, ?)"
_NEWEST = "SELECT max(version) FROM leaseq_migrations"


def schema_version(connection: sqlite3.Connection) -> int | None:
    """
    Return the version of the schema, or None when nothing was ever applied.

    Raises:
        StorageUnavailableError: another process writes, longer than we may wait.
        MigrationRefusedError: the file is no database.
    """
    with _translated():
        return _version(connection)


def ensure_schema(connection: sqlite3.Connection) -> None:
    """
    Make sure that this leaseq can work with the file; make the schema when there is none yet.

    Raises:
        SchemaOutdatedError: it is older than this leaseq, and populated.
        SchemaTooNewError: it is newer.
        StorageUnavailableError: another process writes, longer than we may wait.
        MigrationRefusedError: SQLite refused; nothing was changed.
    """
    migrations = read_migrations("sqlite")
    with _translated():
        found = _version(connection)
        if pending(migrations, found=found, only_if_empty=True):
            _apply(connection, migrations, only_if_empty=True)


def migrate(connection: sqlite3.Connection) -> list[str]:
    """
    Bring the schema to the version of this leaseq, and return the names of what was applied.

    Of several callers at once, one applies and the others wait, and find nothing to do.

    Raises:
        SchemaTooNewError: it is newer.
        StorageUnavailableError: another process writes, longer than we may wait.
        MigrationRefusedError: SQLite refused; nothing was changed.
    """
    migrations = read_migrations("sqlite")
    with _translated():
        return _apply(connection, migrations, only_if_empty=False)


def _apply(
    connection: sqlite3.Connection, known: tuple[Migration, ...], *, only_if_empty: bool
) -> list[str]:
    with _writing(connection):
        # Read (again) as the only writer: others may have applied everything meanwhile.
        found = _version(connection)
        migrations = pending(known, found=found, only_if_empty=only_if_empty)
        if migrations and not _number(connection, _VERSIONS_EXIST):
            connection.execute(_CREATE_VERSIONS)
        for migration in migrations:
            for statement in _statements(migration.sql):
                connection.execute(statement)
            connection.execute(_RECORD, (migration.version, migration.name))
    return [migration.name for migration in migrations]


@contextmanager
def _writing(connection: sqlite3.Connection) -> Iterator[None]:
    # IMMEDIATE waits for the other writer now; a transaction that first reads and then writes
    # is refused at once when somebody wrote in between.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # Some errors of SQLite have rolled back already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(text: str) -> Iterator[str]:
    """Cut a migration into statements: `executescript` would commit our transaction first."""
    statement = ""
    for piece in re.split("(?<=;)", text):
        statement += piece
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    yield statement


def _version(connection: sqlite3.Connection) -> int | None:
    if not _number(connection, _VERSIONS_EXIST):
        return None
    return _number(connection, _NEWEST)


def _number(connection: sqlite3.Connection, question: str) -> int | None:
    cursor = connection.cursor()
    cursor.row_factory = None  # whatever the owner of the connection makes of rows
    number: int | None = cursor.execute(question).fetchone()[0]
    return number


@contextmanager
def _translated() -> Iterator[None]:
    """Raise our errors for the driver's."""
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        raise MigrationRefusedError(f"SQLite {sqlite3.sqlite_version} is too old: 3.37 will do")
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorname.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            raise StorageUnavailableError(f"cannot migrate now: {error}") from error
        raise MigrationRefusedError(f"cannot migrate: {error}") from error
    except sqlite3.Error as error:
        raise MigrationRefusedError(f"cannot migrate: {error}") from error
