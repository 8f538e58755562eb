from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, LiteralString
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from leaseq.adapters.migrations import SchemaTooNewError
from leaseq.adapters.postgres import open_postgres
from leaseq.adapters.postgres.connections import Bounds
from leaseq.adapters.postgres.migrator import ensure_schema
from leaseq.domain.errors import StorageError, StorageUnavailableError
from leaseq.domain.storing import Added, Change, Replaced, Selection
from leaseq.domain.task import Dead, Task
from leaseq.testing import NOON, a_demand, a_task, some_grants
from leaseq.testing.conformance.replace import changed
from postgres_fixtures import PostgresFixtures
from tcp_proxy import proxied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from leaseq.domain.ports import Storage, TaskRepository
    from leaseq.testing import Connect
    from tcp_proxy import TcpProxy

RECOVERY_SECONDS = 10


class TestOutages(PostgresFixtures):
    @pytest.fixture
    async def proxy(self, postgres_url: str) -> AsyncIterator[TcpProxy]:
        parts = urlsplit(postgres_url)
        async with proxied(parts.hostname or "127.0.0.1", parts.port or 5432) as proxy:
            yield proxy

    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str, proxy: TcpProxy) -> Connect:
        parts = urlsplit(postgres_url)
        host = f"{parts.username}:{parts.password}@127.0.0.1:{proxy.port}"
        return partial(
            open_postgres,
            parts._replace(netloc=host).geturl(),
            schema=postgres_schema,
            bounds=Bounds(statement=timedelta(seconds=2)),
        )

    async def test_work_goes_on_after_all_sessions_were_ended_twice(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        stored: list[Task] = []
        for _ in range(2):
            stored += [a_task(key=f"k-{len(stored)}-{number}") for number in range(5)]
            await until_done(tasks, stored)
            end_sessions(tables)

        await until_done(tasks, [stored[0]])
        kept = tables.execute("SELECT count(*), count(DISTINCT id) FROM tasks").fetchone()
        assert kept == (10, 10)

    async def test_sessions_that_end_at_work_neither_lose_nor_double_a_task(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        stored = [a_task(key=f"k-{number}") for number in range(300)]
        stop = asyncio.Event()

        async def end_sessions_now_and_then() -> None:
            while not stop.is_set():
                end_sessions(tables)
                await asyncio.sleep(0.05)

        ending = asyncio.create_task(end_sessions_now_and_then())
        for first in range(0, 300, 10):
            await until_done(tasks, stored[first : first + 10])
        stop.set()
        await ending

        kept = tables.execute("SELECT count(*), count(DISTINCT id) FROM tasks").fetchone()
        assert kept == (300, 300)

    async def test_a_server_that_takes_no_writes_is_left_and_found_again(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        task = a_task()
        await tasks.add([task])

        with read_only(tables):
            for _ in range(2):
                with pytest.raises(StorageUnavailableError):
                    await tasks.add([a_task()])

        began = time.monotonic()
        await until_done(tasks, [a_task()])
        outcome = await tasks.replace([Change(old=task, new=changed(task, Dead(at=NOON)))])
        assert outcome == [Replaced.DONE]
        assert time.monotonic() - began < RECOVERY_SECONDS

    async def test_while_the_server_is_away_calls_fail_in_time_and_then_go_on(
        self, storage: Storage, proxy: TcpProxy
    ) -> None:
        await storage.tasks.add([a_task()])
        await proxy.leave()
        began = time.monotonic()

        with pytest.raises(StorageUnavailableError):
            await storage.tasks.claim(a_demand(), now=NOON)
        with pytest.raises(StorageUnavailableError):
            await storage.tend()

        assert time.monotonic() - began < 2 * RECOVERY_SECONDS
        await proxy.come()
        await until_done(storage.tasks, [a_task()])
        found = await storage.tasks.claim(a_demand(grants=some_grants(5)), now=NOON)
        assert len(found.tasks) == 2
        await storage.tend()

    async def test_a_commit_whose_answer_is_lost_is_found_when_it_is_repeated(
        self, tasks: TaskRepository, proxy: TcpProxy
    ) -> None:
        task = a_task(key="k")
        await tasks.add([a_task()])
        proxy.swallow_answers()

        with pytest.raises(StorageUnavailableError):
            await tasks.add([task])
        proxy.talk_again()

        await until_done(tasks, [task])
        listed = await tasks.search(Selection(), limit=5, with_payload=False)
        assert sum(each.idempotency_key == "k" for each in listed.tasks) == 1


async def test_a_server_that_is_down_at_the_start_is_told_at_once(unused_tcp_port: int) -> None:
    began = time.monotonic()

    with pytest.raises(StorageUnavailableError) as told:
        async with open_postgres(f"postgresql://ada:hunter2@127.0.0.1:{unused_tcp_port}/tasks"):
            pass

    assert time.monotonic() - began < 5
    assert "hunter2" not in str(told.value)


async def test_a_schema_of_a_newer_leaseq_is_refused(
    postgres_url: str, postgres_schema: str
) -> None:
    async with open_postgres(postgres_url, schema=postgres_schema):
        pass
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("INSERT INTO {} VALUES (9999, '9999_from_the_future')").format(
                sql.Identifier(postgres_schema, "leaseq_migrations")
            )
        )

    with pytest.raises(SchemaTooNewError):
        async with open_postgres(postgres_url, schema=postgres_schema):
            pass


async def test_a_database_that_cannot_keep_every_text_is_refused(postgres_url: str) -> None:
    with (
        other_database(postgres_url, "ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0") as url,
        pytest.raises(StorageError, match="UTF8"),
    ):
        async with open_postgres(url):
            pass


@pytest.mark.parametrize("schema", ['q-1"x', "100%s %(now)b {tasks}", "Größe 🦊", "select"])
async def test_any_name_of_a_schema_will_do_for_a_role_that_sees_nothing_else(
    postgres_url: str, schema: str
) -> None:
    task = a_task(key="k")
    async with (
        runtime_role(postgres_url, schema) as url,
        open_postgres(url, schema=schema) as storage,
    ):
        added = await storage.tasks.add([task])
        [leased] = (await storage.tasks.claim(a_demand(types=[task.type]), now=NOON)).tasks
        ended = changed(leased, Dead(at=NOON))
        replaced = await storage.tasks.replace([Change(old=leased, new=ended)])
        stats = await storage.tasks.stats(now=NOON)
        due = await storage.tasks.next_due([task.queue], [], now=NOON)
        deleted = await storage.tasks.delete([ended])

    assert (added, replaced, deleted) == ([Added.STORED], [Replaced.DONE], [Replaced.DONE])
    assert [queue.queue for queue in stats] == [task.queue]
    assert due is None


async def until_done(tasks: TaskRepository, wanted: list[Task]) -> None:
    """Add tasks as callers do: again, until it is certain."""
    async with asyncio.timeout(RECOVERY_SECONDS):
        while True:
            try:
                outcomes = await tasks.add(wanted)
            except StorageUnavailableError:
                await asyncio.sleep(0.05)
            else:
                assert outcomes == [Added.STORED] * len(wanted)
                return


def end_sessions(connection: psycopg.Connection) -> None:
    connection.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE application_name = 'leaseq' AND datname = current_database()"
    )


@contextmanager
def read_only(connection: psycopg.Connection) -> Iterator[None]:
    """Let the whole server refuse writes, as one that was demoted does."""
    try:
        connection.execute("ALTER SYSTEM SET default_transaction_read_only TO on")
    except psycopg.errors.InsufficientPrivilege:
        pytest.skip("the role may not demote the server")
    try:
        connection.execute("SELECT pg_reload_conf()")
        time.sleep(0.2)
        yield
    finally:
        connection.execute("SET default_transaction_read_only TO off")
        connection.execute("ALTER SYSTEM RESET default_transaction_read_only")
        connection.execute("SELECT pg_reload_conf()")


@contextmanager
def other_database(url: str, options: str) -> Iterator[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE leaseq_test_other {options}".encode())
        try:
            yield urlsplit(url)._replace(path="/leaseq_test_other").geturl()
        finally:
            connection.execute("DROP DATABASE leaseq_test_other WITH (FORCE)")


@asynccontextmanager
async def runtime_role(url: str, schema: str) -> AsyncIterator[str]:
    """Migrate `schema`, and give a role that may use its tables and has no search path."""
    role, name = sql.Identifier("leaseq_test_runtime"), sql.Identifier(schema)
    await ensure_schema(url, schema)
    commands: list[LiteralString] = [
        "CREATE ROLE {role} LOGIN PASSWORD 'secret'",
        "ALTER ROLE {role} SET search_path TO ''",
        "GRANT USAGE ON SCHEMA {name} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {name} TO {role}",
    ]
    with psycopg.connect(url, autocommit=True) as connection:
        for command in commands:
            connection.execute(sql.SQL(command).format(role=role, name=name))
        try:
            parts = urlsplit(url)
            address = f"leaseq_test_runtime:secret@{parts.hostname}:{parts.port}"
            yield parts._replace(netloc=address).geturl()
        finally:
            connection.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(name))
            connection.execute(sql.SQL("DROP OWNED BY {}").format(role))
            connection.execute(sql.SQL("DROP ROLE {}").format(role))
