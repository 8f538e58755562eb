from __future__ import annotations

import asyncio
import secrets
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, LiteralString
from urllib.parse import quote, urlsplit

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from leaseq.adapters.migrations import (
    MigrationRefusedError,
    SchemaOutdatedError,
    SchemaTooNewError,
)
from leaseq.adapters.postgres.migrator import ensure_schema, migrate, schema_version
from leaseq.domain.errors import StorageError, StorageUnavailableError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

ALL = ["0001_create_tasks"]

MIGRATE = """
import asyncio, sys
from leaseq.adapters.postgres.migrator import migrate

sys.stdin.readline()
print(len(asyncio.run(migrate(*sys.argv[1:]))))
"""

# Whoever creates an index now waits, in the middle of the migration, for lock 1.
HOLD_AT_INDEX = """
    CREATE SCHEMA hold;
    CREATE FUNCTION hold.wait() RETURNS event_trigger LANGUAGE plpgsql
        AS $$ BEGIN PERFORM pg_advisory_xact_lock(1); END $$;
    CREATE EVENT TRIGGER hold ON ddl_command_start WHEN TAG IN ('CREATE INDEX')
        EXECUTE FUNCTION hold.wait();
    SELECT pg_advisory_lock(1);
"""
LET_GO = """
    DROP EVENT TRIGGER hold;
    DROP SCHEMA hold CASCADE;
    SELECT pg_advisory_unlock(1);
"""
HELD = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'leaseq%'
      AND wait_event = 'advisory'
"""


async def test_an_empty_database_gets_tables_and_indexes(
    postgres_url: str, postgres_schema: str
) -> None:
    applied = await migrate(postgres_url, postgres_schema)

    assert applied == ALL
    assert await schema_version(postgres_url, postgres_schema) == len(ALL)
    assert _relations(postgres_url, postgres_schema) == {
        "leaseq_migrations",
        "leaseq_migrations_pkey",
        "queues",
        "queues_pkey",
        "tasks",
        "tasks_claimable",
        "tasks_finished",
        "tasks_keyed",
        "tasks_leased",
        "tasks_listed",
        "tasks_pkey",
        "tasks_waiting",
    }


async def test_nothing_is_applied_twice(postgres_url: str, postgres_schema: str) -> None:
    await migrate(postgres_url, postgres_schema)

    assert await migrate(postgres_url, postgres_schema) == []
    assert await schema_version(postgres_url, postgres_schema) == len(ALL)


async def test_a_schema_that_is_not_there_has_no_version(
    postgres_url: str, postgres_schema: str
) -> None:
    assert await schema_version(postgres_url, postgres_schema) is None
    assert not _schema_exists(postgres_url, postgres_schema)


async def test_starting_makes_the_schema_and_then_leaves_it_alone(
    postgres_url: str, postgres_schema: str
) -> None:
    await ensure_schema(postgres_url, postgres_schema)
    await ensure_schema(postgres_url, postgres_schema)

    assert await schema_version(postgres_url, postgres_schema) == len(ALL)


@pytest.mark.parametrize("isolation", ["read\\ committed", "serializable"])
@pytest.mark.parametrize("run", range(10))
async def test_of_eight_at_once_one_applies_and_none_fails(
    postgres_url: str, postgres_schema: str, isolation: str, run: int
) -> None:
    url = f"{postgres_url}?options={quote(f'-cdefault_transaction_isolation={isolation}')}"

    applied = await asyncio.gather(*(migrate(url, postgres_schema) for _ in range(8)))

    assert sorted(applied) == [[]] * 7 + [ALL], f"run {run}"


@pytest.mark.parametrize("run", range(10))
async def test_eight_servers_may_start_at_once(
    postgres_url: str, postgres_schema: str, run: int
) -> None:
    await asyncio.gather(*(ensure_schema(postgres_url, postgres_schema) for _ in range(8)))

    assert await schema_version(postgres_url, postgres_schema) == len(ALL), f"run {run}"


def test_of_eight_processes_at_once_one_applies_and_none_fails(
    postgres_url: str, postgres_schema: str
) -> None:
    processes = [_start_migrating(postgres_url, postgres_schema) for _ in range(8)]

    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    counts = sorted(process.communicate(timeout=50)[0].strip() for process in processes)

    assert counts == ["0"] * 7 + [str(len(ALL))]
    assert [process.returncode for process in processes] == [0] * 8


async def test_a_killed_migration_leaves_nothing_behind(
    postgres_url: str, postgres_schema: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(HOLD_AT_INDEX)
        try:
            with _start_migrating(postgres_url, postgres_schema) as process:
                assert process.stdin is not None
                process.stdin.write("go\n")
                process.stdin.flush()
                _wait_until_one_is_held(connection)
                process.kill()
        finally:
            connection.execute(LET_GO)

    applied = await migrate(postgres_url, postgres_schema)

    assert applied == ALL


async def test_a_refused_migration_leaves_nothing_behind(
    postgres_url: str, postgres_schema: str
) -> None:
    _execute(postgres_url, "CREATE SCHEMA {s}; CREATE TABLE {s}.queues ()", postgres_schema)

    with pytest.raises(MigrationRefusedError, match='relation "queues" already exists'):
        await migrate(postgres_url, postgres_schema)

    assert _relations(postgres_url, postgres_schema) == {"queues"}


async def test_a_newer_schema_is_refused(postgres_url: str, postgres_schema: str) -> None:
    await migrate(postgres_url, postgres_schema)
    _execute(
        postgres_url,
        "INSERT INTO {s}.leaseq_migrations VALUES (9999, '9999_come_later')",
        postgres_schema,
    )

    with pytest.raises(SchemaTooNewError):
        await migrate(postgres_url, postgres_schema)
    with pytest.raises(SchemaTooNewError):
        await ensure_schema(postgres_url, postgres_schema)


async def test_starting_refuses_to_change_a_populated_schema(
    postgres_url: str, postgres_schema: str
) -> None:
    await migrate(postgres_url, postgres_schema)
    _execute(
        postgres_url,
        "DELETE FROM {s}.leaseq_migrations; INSERT INTO {s}.leaseq_migrations VALUES (0, 'old')",
        postgres_schema,
    )

    with pytest.raises(SchemaOutdatedError, match="leaseq migrate"):
        await ensure_schema(postgres_url, postgres_schema)


@pytest.mark.parametrize("name", ['q-1"x', "100%s", "Groß; DROP", "x" * 63])
async def test_a_role_needs_nothing_but_its_own_schema(postgres_url: str, name: str) -> None:
    with _role(postgres_url, "CREATE SCHEMA {s} AUTHORIZATION {r}", schema=name) as url:
        applied = await migrate(url, name)
        await ensure_schema(url, name)

        assert applied == ALL
        assert "tasks_claimable" in _relations(postgres_url, name)


async def test_a_server_may_start_as_a_role_that_cannot_change_the_schema(
    postgres_url: str, postgres_schema: str
) -> None:
    await migrate(postgres_url, postgres_schema)
    grants = (
        "GRANT USAGE ON SCHEMA {s} TO {r};"
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {s} TO {r}"
    )

    with _role(postgres_url, grants, schema=postgres_schema) as url:
        await ensure_schema(url, postgres_schema)


async def test_a_role_that_may_not_create_the_schema_is_told_so(
    postgres_url: str, postgres_schema: str
) -> None:
    with (
        _role(postgres_url, "SELECT 1", schema=postgres_schema) as url,
        pytest.raises(MigrationRefusedError, match="permission denied for database"),
    ):
        await migrate(url, postgres_schema)


@pytest.mark.parametrize(
    ("grants", "missing"),
    [
        ("", "GRANT USAGE, CREATE ON SCHEMA"),
        ("GRANT USAGE ON SCHEMA {s} TO {r}", "GRANT CREATE ON SCHEMA"),
        ("GRANT CREATE ON SCHEMA {s} TO {r}", "GRANT USAGE ON SCHEMA"),
    ],
)
@pytest.mark.parametrize("make", [migrate, ensure_schema])
async def test_a_role_that_may_not_use_the_schema_is_told_what_to_grant(
    postgres_url: str,
    postgres_schema: str,
    make: Callable[[str, str], Awaitable[object]],
    grants: LiteralString,
    missing: str,
) -> None:
    with _role(postgres_url, "CREATE SCHEMA {s};" + grants, schema=postgres_schema) as url:
        with pytest.raises(MigrationRefusedError, match=missing):
            await make(url, postgres_schema)

        assert _relations(postgres_url, postgres_schema) == set()


async def test_a_server_that_may_not_use_a_migrated_schema_is_told_what_to_grant(
    postgres_url: str, postgres_schema: str
) -> None:
    await migrate(postgres_url, postgres_schema)

    with (
        _role(postgres_url, "SELECT 1", schema=postgres_schema) as url,
        pytest.raises(MigrationRefusedError, match="GRANT USAGE ON SCHEMA"),
    ):
        await ensure_schema(url, postgres_schema)


@pytest.mark.parametrize("name", ["$user", "pg_temp", "pg_temp_1"])
async def test_a_schema_that_a_search_path_reads_as_another_is_refused(
    postgres_url: str, name: str
) -> None:
    with pytest.raises(MigrationRefusedError):
        await migrate(postgres_url, name)


@pytest.mark.parametrize("name", ["", "x" * 64, "ß" * 32, "a\0b"])
async def test_a_name_that_postgresql_would_change_is_refused(postgres_url: str, name: str) -> None:
    with pytest.raises(MigrationRefusedError, match="1 to 63 bytes"):
        await migrate(postgres_url, name)


async def test_an_unreachable_database_may_come_back_later() -> None:
    with pytest.raises(StorageUnavailableError):
        await migrate("postgresql://127.0.0.1:1/none", "leaseq")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"dbname": "leaseq_none"}, "database .* does not exist"),
        ({"user": "leaseq_none"}, "authentication failed|does not exist"),
        ({"password": "wrong"}, "authentication failed"),
        ({"sslmode": "bogus"}, "invalid sslmode"),
        ({"port": "99999"}, "invalid port number"),
        ({"connect_timeout": "soon"}, "not one that PostgreSQL understands"),
    ],
)
async def test_what_waiting_does_not_heal_is_no_unavailable_storage(
    postgres_url: str, postgres_schema: str, change: dict[str, str], told: str
) -> None:
    dsn = make_conninfo(postgres_url, **change)

    with pytest.raises(StorageError, match=told) as caught:
        await ensure_schema(dsn, postgres_schema)

    assert not isinstance(caught.value, StorageUnavailableError)


async def test_a_bad_dsn_is_not_repeated_in_the_error() -> None:
    with pytest.raises(MigrationRefusedError) as caught:
        await migrate("postgresql://me:secret@host:port:/x y", "leaseq")

    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("dsn", "schema"),
    [
        ("postgresql://me:secret@" + "a" * 70 + ".example/x", "leaseq"),
        ("host=127.0.0.1 port=1 password='secret\ud800'", "leaseq"),
        ("postgresql://me:secret@127.0.0.1:1/x", "secret\ud800"),
    ],
    ids=["a host that no name can be", "a surrogate in the DSN", "a surrogate in the schema"],
)
async def test_what_cannot_be_sent_is_refused_and_not_repeated(dsn: str, schema: str) -> None:
    with pytest.raises(MigrationRefusedError, match="cannot be sent") as caught:
        await ensure_schema(dsn, schema)

    assert "secret" not in str(caught.value)


async def test_the_encoding_of_the_dsn_does_not_limit_names(postgres_url: str) -> None:
    with _role(postgres_url, "CREATE SCHEMA {s} AUTHORIZATION {r}", schema="zażółć") as url:
        assert await migrate(f"{url}?client_encoding=latin1", "zażółć") == ALL


async def test_a_table_of_versions_that_is_not_ours_is_refused(
    postgres_url: str, postgres_schema: str
) -> None:
    _execute(
        postgres_url,
        "CREATE SCHEMA {s}; CREATE TABLE {s}.leaseq_migrations (version) AS SELECT 'one'::text",
        postgres_schema,
    )

    with pytest.raises(MigrationRefusedError):
        await ensure_schema(postgres_url, postgres_schema)


def _execute(url: str, statements: LiteralString, schema: str, *, role: str = "none") -> None:
    query = sql.SQL(statements).format(s=sql.Identifier(schema), r=sql.Identifier(role))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(query)


def _relations(url: str, schema: str) -> set[str]:
    query = "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace"
    with psycopg.connect(url) as connection:
        quoted = sql.Identifier(schema).as_string(connection)
        return {name for (name,) in connection.execute(query, (quoted,))}


def _schema_exists(url: str, schema: str) -> bool:
    query = "SELECT FROM pg_namespace WHERE nspname = %s"
    with psycopg.connect(url) as connection:
        return connection.execute(query, (schema,)).fetchone() is not None


@contextmanager
def _role(url: str, grants: LiteralString, *, schema: str) -> Iterator[str]:
    """Make a role with an empty search_path that may do what `grants` says, and nothing else."""
    role, password = f"leaseq_test_{secrets.token_hex(4)}", secrets.token_hex(8)
    _execute(url, "CREATE ROLE {r} LOGIN; ALTER ROLE {r} SET search_path = ''", schema, role=role)
    try:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.pgconn.change_password(role.encode(), password.encode())
        _execute(url, grants, schema, role=role)
        parts = urlsplit(url)
        address = parts.netloc.rpartition("@")[2]
        yield parts._replace(netloc=f"{role}:{password}@{address}").geturl()
    finally:
        clean_up: LiteralString = (
            "DROP SCHEMA IF EXISTS {s} CASCADE; DROP OWNED BY {r}; DROP ROLE {r}"
        )
        _execute(url, clean_up, schema, role=role)


def _start_migrating(url: str, schema: str) -> subprocess.Popen[str]:
    """Start a process that migrates when it gets a line."""
    return subprocess.Popen(
        [sys.executable, "-c", MIGRATE, url, schema],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _wait_until_one_is_held(connection: psycopg.Connection) -> None:
    deadline = time.monotonic() + 30
    while connection.execute(HELD).fetchone() != (1,):
        assert time.monotonic() < deadline
        time.sleep(0.02)
