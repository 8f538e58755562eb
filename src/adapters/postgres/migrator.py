"""
Makes and changes the schema of a PostgreSQL database, safely for any number of processes at once.

All of a run is one transaction: whatever ends it, nothing half done and no lock is left. It
needs no more than a schema that its role owns, or the right to create one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from typing import Any, Literal, LiteralString

import psycopg
from psycopg import AsyncConnection, IsolationLevel, sql
from psycopg.conninfo import conninfo_to_dict

from ...domain.errors import StorageError, StorageUnavailableError
from ..migrations import (
    Migration,
    MigrationRefusedError,
    pending,
    read_migrations,
)
from .faults import lasting_fault, words_of_driver

# How long each call may take in all. Bounds on the server (below) end earlier and say more; these
# are for a server that has stopped answering while its machine still acknowledges packets.
_VERSION_SECONDS = 30
_ENSURE_SECONDS = 120
_MIGRATE_SECONDS = 960

# A connection whose other end is gone is noticed after 10 + 3 * 5 seconds, and not after hours
# in which it may hold the lock. Whoever names these in the DSN knows better.
_CONNECTION: dict[str, Any] = {
    "application_name": "leaseq migrate",
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}

# `SET LOCAL` only, which a transaction pooler keeps to this transaction.
_BEFORE_THE_LOCK: tuple[LiteralString, ...] = (
    # Whoever stops between two statements, machine and all, is rolled back by the server.
    "SET LOCAL idle_in_transaction_session_timeout = '60s'",
    # Time for an index on millions of rows, but not for ever.
    "SET LOCAL statement_timeout = '900s'",
    # Others that migrate the same empty schema take a second.
    "SET LOCAL lock_timeout = '60s'",
)
# A change of a table waits for running statements on it, and makes all later ones wait
# behind it: better to give up and be called again.
_AFTER_THE_LOCK: LiteralString = "SET LOCAL lock_timeout = '10s'"

_LOCK = "SELECT pg_advisory_xact_lock(%s)"
_SCHEMA_EXISTS = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = %s)"
_RIGHTS = """
    SELECT pg_catalog.has_schema_privilege(oid, 'USAGE'),
        pg_catalog.has_schema_privilege(oid, 'CREATE')
    FROM pg_catalog.pg_namespace WHERE nspname = %s
"""
_CURRENT_SCHEMA = "SELECT current_schema() = %s"
_VERSIONS_EXIST = """
    SELECT EXISTS (
        SELECT FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n
            ON n.oid = c.relnamespace
        WHERE n.nspname = %s AND c.relname = 'leaseq_migrations'
    )
"""
# `pg_temp` last, else it comes first, and a temporary table could stand in for one of ours.
_SEARCH_PATH: LiteralString = "SET LOCAL search_path TO {}, pg_temp"
_CREATE_SCHEMA: LiteralString = "CREATE SCHEMA {}"
_CREATE_VERSIONS = """
    CREATE TABLE leaseq_migrations (
        version integer PRIMARY KEY,
        name text NOT NULL,
        applied_at timestamptz DEFAULT CURRENT_TIMESTAMP NOT NULL
    )
"""
_RECORD = "INSERT INTO leaseq_migrations (version, name) VALUES (%s, %s)"
# As a number, should the table be somebody else's.
_NEWEST: LiteralString = "SELECT max(version)::integer FROM {}"


async def schema_version(dsn: str, schema: str) -> int | None:
    """
    Return the version of `schema`, or None when nothing was ever applied to it.

    Raises:
        StorageUnavailableError: the database cannot be reached.
        MigrationRefusedError: this role may not look.
        StorageError: the DSN, the role, its password or the database is wrong.
    """
    async with _connected(dsn, schema, seconds=_VERSION_SECONDS) as connection:
        return await _version(connection, schema)


async def ensure_schema(dsn: str, schema: str) -> None:
    """
    Make sure that this leaseq can work with `schema`; make it when there is nothing in it yet.

    A populated schema is only looked at: a role that may not change it will do.

    Raises:
        SchemaOutdatedError: it is older than this leaseq, and populated.
        SchemaTooNewError: it is newer.
        StorageUnavailableError: the database cannot be reached, or a lock not be had.
        MigrationRefusedError: the database refused; nothing was changed.
        StorageError: the DSN, the role, its password or the database is wrong.
    """
    migrations = read_migrations("postgres")
    async with _connected(dsn, schema, seconds=_ENSURE_SECONDS) as connection:
        found = await _version(connection, schema)
        if pending(migrations, found=found, only_if_empty=True):
            await _apply(connection, schema, migrations, only_if_empty=True)


async def migrate(dsn: str, schema: str) -> list[str]:
    """
    Bring `schema` to the version of this leaseq, and return the names of what was applied.

    Of several callers at once, one applies and the others wait, and find nothing to do.

    Raises:
        SchemaTooNewError: it is newer.
        StorageUnavailableError: the database cannot be reached, or a lock not be had.
        MigrationRefusedError: the database refused; nothing was changed.
        StorageError: the DSN, the role, its password or the database is wrong.
    """
    migrations = read_migrations("postgres")
    async with _connected(dsn, schema, seconds=_MIGRATE_SECONDS) as connection:
        return await _apply(connection, schema, migrations, only_if_empty=False)


async def _apply(
    connection: AsyncConnection, schema: str, known: tuple[Migration, ...], *, only_if_empty: bool
) -> list[str]:
    async with connection.transaction():
        await _lock(connection, schema)
        await _enter(connection, schema)
        # Read again: whoever held the lock before us may have applied everything.
        found = await _version(connection, schema)
        migrations = pending(known, found=found, only_if_empty=only_if_empty)
        if migrations:
            await _require_place(connection, schema)
        if migrations and not await _has_versions(connection, schema):
            await connection.execute(_CREATE_VERSIONS)
        for migration in migrations:
            # As bytes and without parameters: a text of several statements, sent as it is.
            await connection.execute(migration.sql.encode())
            await connection.execute(_RECORD, (migration.version, migration.name))
    return [migration.name for migration in migrations]


async def _lock(connection: AsyncConnection, schema: str) -> None:
    """Wait until no other process migrates `schema`; the end of the transaction unlocks."""
    for setting in _BEFORE_THE_LOCK:
        await connection.execute(setting)
    digest = sha256(b"leaseq migrate " + schema.encode()).digest()
    key = int.from_bytes(digest[:8], "big", signed=True)
    await connection.execute(_LOCK, (key,))
    await connection.execute(_AFTER_THE_LOCK)


async def _enter(connection: AsyncConnection, schema: str) -> None:
    """Make unqualified names mean `schema`, which is created when it is missing."""
    # Looked for first: `IF NOT EXISTS` demands the right to create a schema that is there.
    if not await _exists(connection, _SCHEMA_EXISTS, schema):
        await connection.execute(sql.SQL(_CREATE_SCHEMA).format(sql.Identifier(schema)))
    await connection.execute(sql.SQL(_SEARCH_PATH).format(sql.Identifier(schema)))


async def _require_place(connection: AsyncConnection, schema: str) -> None:
    """Refuse unless unqualified tables are made in `schema`, and by this role."""
    await _require_right(connection, schema, "CREATE")
    # Passed over in a search path is also what is spelt as a keyword of it, as `$user` is.
    if not await _exists(connection, _CURRENT_SCHEMA, schema):
        raise MigrationRefusedError(f"PostgreSQL makes no tables in a schema named {schema!r}")


async def _require_right(
    connection: AsyncConnection, schema: str, wanted: Literal["USAGE", "CREATE"]
) -> None:
    """
    Refuse a schema that is there and lacks a right of this role.

    PostgreSQL itself leaves it out of a search path without a word, and makes tables in the
    next one.
    """
    cursor = await connection.execute(_RIGHTS, (schema,))
    row = await cursor.fetchone()
    if row is None:
        return
    missing = [
        right
        for right, granted in zip(("USAGE", "CREATE"), row, strict=True)
        if not granted and (right, wanted) != ("CREATE", "USAGE")
    ]
    if missing:
        raise MigrationRefusedError(
            f"the role lacks rights on schema {schema!r}:"
            f" GRANT {', '.join(missing)} ON SCHEMA {_quoted(schema)} TO the role"
            + (", or run `leaseq migrate` as its owner" if wanted == "CREATE" else "")
        )


def _quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


async def _version(connection: AsyncConnection, schema: str) -> int | None:
    if not await _has_versions(connection, schema):
        return None
    await _require_right(connection, schema, "USAGE")
    table = sql.Identifier(schema, "leaseq_migrations")
    cursor = await connection.execute(sql.SQL(_NEWEST).format(table))
    row = await cursor.fetchone()
    return None if row is None else row[0]


async def _has_versions(connection: AsyncConnection, schema: str) -> bool:
    return await _exists(connection, _VERSIONS_EXIST, schema)


async def _exists(connection: AsyncConnection, question: LiteralString, schema: str) -> bool:
    cursor = await connection.execute(question, (schema,))
    return await cursor.fetchone() == (True,)


@asynccontextmanager
async def _connected(dsn: str, schema: str, *, seconds: float) -> AsyncIterator[AsyncConnection]:
    with _translated(schema):
        _check_name(schema)
        given = _parsed(dsn)
        parameters = {**_CONNECTION, **_several(given), **given, "client_encoding": "utf8"}
        async with (
            asyncio.timeout(seconds),
            # Autocommit, so that nothing but the migration's transaction is ever open.
            await AsyncConnection.connect(
                **parameters, autocommit=True, prepare_threshold=None
            ) as connection,
        ):
            # At a stricter level the wait for the lock would fix what is seen after it.
            await connection.set_isolation_level(IsolationLevel.READ_COMMITTED)
            yield connection


def _several(given: Mapping[str, Any]) -> dict[str, Any]:
    """Of several hosts, pass over a standby that was a primary; one host is what it is."""
    hosts = f"{given.get('host', '')}{given.get('hostaddr', '')}"
    return {"target_session_attrs": "read-write"} if "," in hosts else {}


def _check_name(schema: str) -> None:
    # PostgreSQL cuts longer names, and a NUL ends one: we would look for another than we make.
    if not 1 <= len(schema.encode()) <= 63 or "\0" in schema:  # noqa: PLR2004  NAMEDATALEN - 1
        raise MigrationRefusedError(f"schema name {schema!r} is not of 1 to 63 bytes")
    if schema.startswith("pg_"):
        # Temporary tables have theirs there, which end with their session.
        raise MigrationRefusedError(f"schema name {schema!r} is PostgreSQL's own: it begins pg_")


def _parsed(dsn: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Without the driver's words, which quote the DSN, password and all.
        raise MigrationRefusedError("the DSN is not one that PostgreSQL understands") from None


@contextmanager
def _translated(schema: str) -> Iterator[None]:
    """Raise our errors for the driver's."""
    try:
        yield
    except TimeoutError as error:
        raise StorageUnavailableError("the database does not answer in time") from error
    except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction) as error:
        if why := lasting_fault(error):
            raise StorageError(f"PostgreSQL cannot be used: {why}") from error
        raise StorageUnavailableError(
            f"PostgreSQL is not available: {words_of_driver(error)}"
        ) from error
    except psycopg.ProgrammingError as error:
        if error.sqlstate is None:
            # Raised by the driver itself, for the DSN, which it may quote.
            raise StorageError("the DSN is not one that PostgreSQL understands") from None
        reason = words_of_driver(error)
        raise MigrationRefusedError(f"cannot migrate schema {schema!r}: {reason}") from error
    except psycopg.Error as error:
        reason = words_of_driver(error)
        raise MigrationRefusedError(f"cannot migrate schema {schema!r}: {reason}") from error
    except UnicodeError:
        # Of a host that cannot be looked up, or of a lone surrogate anywhere. It quotes either.
        raise MigrationRefusedError(
            "the DSN or the schema's name holds what cannot be sent to PostgreSQL"
        ) from None
