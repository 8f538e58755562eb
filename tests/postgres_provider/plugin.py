"""
Fixtures for tests against a real PostgreSQL.

Nothing is started before the first test that asks for `postgres_url`, and no test is skipped
when there is no server: it fails, and says why each way of finding one is closed.
"""

from __future__ import annotations

import gc
import secrets
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from .sources import running_postgres

if TYPE_CHECKING:
    from collections.abc import Iterator

_ORIGIN = pytest.StashKey[str]()
# A backend ends a moment after its client has closed the connection.
_LEAVE_SECONDS = 5

_CONNECTIONS_LEFT = """
    SELECT application_name, state, left(query, 200) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'leaseq%'
      AND pid <> pg_backend_pid()
"""


@pytest.fixture(scope="session")
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """
    URL of a database for this session alone, as a role that may do everything in it.

    On a server named by `LEASEQ_TEST_POSTGRES_URL` whose role may not create databases, it is
    the database of that URL itself.
    """
    with running_postgres() as server:
        request.config.stash[_ORIGIN] = server.origin
        with _database_on(server.url) as url:
            yield url
            with psycopg.connect(url) as connection:
                assert_no_connection_is_left(connection)


@pytest.fixture
def postgres_schema(postgres_url: str) -> Iterator[str]:
    """
    Name of a schema that does not exist yet, dropped after the test.

    The name works only where it is quoted. The test fails when it leaves a connection of leaseq
    (`application_name` from `leaseq` on) behind.
    """
    name = f'leaseq-"test" {secrets.token_hex(4)}'
    yield name
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        try:
            assert_no_connection_is_left(connection)
        finally:
            connection.execute("SET lock_timeout = '10s'")
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
            )


def assert_no_connection_is_left(connection: psycopg.Connection) -> None:
    """Wait a moment for connections of leaseq to this database to end, and fail if they do not."""
    deadline = time.monotonic() + _LEAVE_SECONDS
    # psycopg closes a connection that timed out while it was made only with its garbage.
    gc.collect()
    connections = connection.execute(_CONNECTIONS_LEFT).fetchall()
    while connections and time.monotonic() < deadline:
        time.sleep(0.05)
        connections = connection.execute(_CONNECTIONS_LEFT).fetchall()
    assert connections == []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say which PostgreSQL was used, if any."""
    if origin := config.stash.get(_ORIGIN, None):
        terminalreporter.write_line(f"PostgreSQL: {origin}")


@contextmanager
def _database_on(server_url: str) -> Iterator[str]:
    name = f"leaseq_test_{secrets.token_hex(4)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        try:
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'").format(
                    sql.Identifier(name)
                )
            )
        except psycopg.errors.InsufficientPrivilege:
            yield server_url
            return
    try:
        yield urlsplit(server_url)._replace(path=f"/{name}").geturl()
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
            )
