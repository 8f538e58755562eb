from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from leaseq.adapters.postgres.connections import Bounds, Connections, Pooler
from leaseq.adapters.postgres.statements import Statement
from leaseq.domain.errors import StorageError
from tcp_proxy import TcpProxy, proxied

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ONE = Statement(b"SELECT 1")
SLEEP = Statement(b"SELECT pg_sleep($1)", ("seconds",))
SHOW = Statement(b"SELECT current_setting($1)", ("name",))
PID = Statement(b"SELECT pg_backend_pid()")
SHORT = Bounds(statement=timedelta(seconds=1), lock=timedelta(milliseconds=200))


@asynccontextmanager
async def opened(
    url: str,
    *,
    size: int = 2,
    reserved: int = 1,
    bounds: Bounds | None = None,
    pooler: Pooler = "none",
) -> AsyncIterator[Connections]:
    async def greet(connection: psycopg.AsyncConnection) -> None:
        await connection.execute("SELECT 1")

    connections = Connections(
        url,
        size=size,
        reserved=reserved,
        bounds=bounds or Bounds(),
        pooler=pooler,
        greet=greet,
    )
    async with connections.opened():
        yield connections


@asynccontextmanager
async def proxied_url(url: str) -> AsyncIterator[tuple[TcpProxy, str]]:
    parts = urlsplit(url)
    async with proxied(parts.hostname or "127.0.0.1", parts.port or 5432) as proxy:
        address = f"{parts.username}:{parts.password}@127.0.0.1:{proxy.port}"
        yield proxy, parts._replace(netloc=address).geturl()


async def until_answered(connections: Connections, *, within: float) -> list[Any]:
    deadline = time.monotonic() + within
    while True:
        try:
            return await connections.fetch(ONE, {})
        except psycopg.OperationalError:
            if time.monotonic() > deadline:
                raise
            await asyncio.sleep(0.05)


def terminate_all(url: str) -> int:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE application_name = 'leaseq' AND datname = current_database()"
        ).rowcount


async def test_sessions_are_named_bounded_and_leave_the_planner_one_way(postgres_url: str) -> None:
    async with opened(postgres_url, bounds=SHORT) as connections:
        shown = {
            name: (await connections.fetch(SHOW, {"name": name}))[0][0]
            for name in (
                "application_name",
                "statement_timeout",
                "lock_timeout",
                "idle_in_transaction_session_timeout",
                "plan_cache_mode",
                "enable_hashjoin",
                "client_encoding",
            )
        }

    assert shown == {
        "application_name": "leaseq",
        "statement_timeout": "1s",
        "lock_timeout": "200ms",
        "idle_in_transaction_session_timeout": "1s",
        "plan_cache_mode": "force_generic_plan",
        "enable_hashjoin": "off",
        "client_encoding": "UTF8",
    }


async def test_options_of_the_dsn_are_kept(postgres_url: str) -> None:
    dsn = make_conninfo(postgres_url, options="-c work_mem=7MB", application_name="leaseq-x")

    async with opened(dsn) as connections:
        work_mem = await connections.fetch(SHOW, {"name": "work_mem"})
        name = await connections.fetch(SHOW, {"name": "application_name"})

    assert (work_mem, name) == ([("7MB",)], [("leaseq-x",)])


async def test_a_dsn_that_is_none_is_refused_without_being_quoted() -> None:
    with pytest.raises(StorageError) as told:
        async with opened("host=db user=ada password=hunter2 nonsense"):
            pass

    assert "hunter2" not in str(told.value)


async def test_a_statement_that_takes_too_long_is_ended_by_the_server(postgres_url: str) -> None:
    async with opened(postgres_url, bounds=SHORT) as connections:
        with pytest.raises(psycopg.errors.QueryCanceled):
            await connections.fetch(SLEEP, {"seconds": 30})

        assert await connections.fetch(ONE, {}) == [(1,)]


async def test_a_cancelled_caller_leaves_at_once_and_its_statement_ends_by_itself(
    postgres_url: str,
) -> None:
    async with opened(postgres_url, size=1) as connections:
        [(pid,)] = await connections.fetch(PID, {})
        caller = asyncio.create_task(connections.fetch(SLEEP, {"seconds": 0.5}))
        await asyncio.sleep(0.1)
        began = time.monotonic()

        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller

        assert time.monotonic() - began < 0.2
        assert await connections.fetch(PID, {}) == [(pid,)]


async def test_reserved_connections_answer_while_all_others_are_at_work(postgres_url: str) -> None:
    async with opened(postgres_url, size=4, reserved=1) as connections:
        storm = [asyncio.create_task(connections.fetch(SLEEP, {"seconds": 0.2})) for _ in range(40)]
        await asyncio.sleep(0.1)
        began = time.monotonic()

        for _ in range(10):
            await connections.fetch(ONE, {}, reserved=True)

        assert time.monotonic() - began < 0.5
        assert not all(one.done() for one in storm)
        await asyncio.gather(*storm)


async def test_connections_that_were_ended_while_idle_cost_no_call(postgres_url: str) -> None:
    async with opened(postgres_url, size=4) as connections:
        await asyncio.gather(*(connections.fetch(SLEEP, {"seconds": 0.1}) for _ in range(4)))
        ended = terminate_all(postgres_url)
        await asyncio.sleep(0.2)

        answers = [await connections.fetch(ONE, {}) for _ in range(8)]

    assert ended >= 2
    assert answers == [[(1,)]] * 8


async def test_connections_that_are_ended_at_work_fail_their_calls_only(postgres_url: str) -> None:
    async with opened(postgres_url, size=2) as connections:
        calls = [asyncio.create_task(connections.fetch(SLEEP, {"seconds": 5})) for _ in range(2)]
        await asyncio.sleep(0.3)

        terminate_all(postgres_url)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)

        assert all(isinstance(outcome, psycopg.errors.AdminShutdown) for outcome in outcomes)
        assert await connections.fetch(ONE, {}) == [(1,)]


async def test_a_server_that_falls_silent_is_hung_up_on_and_found_again(postgres_url: str) -> None:
    async with proxied_url(postgres_url) as (proxy, url), opened(url, bounds=SHORT) as connections:
        await connections.fetch(ONE, {})
        proxy.fall_silent()
        began = time.monotonic()

        with pytest.raises(psycopg.OperationalError):
            await connections.fetch(ONE, {})
        waited = time.monotonic() - began
        proxy.talk_again()
        answer = await until_answered(connections, within=10)

    assert waited < 1 + 2 + 1
    assert answer == [(1,)]


async def test_a_cancelled_caller_does_not_wait_for_a_silent_server(postgres_url: str) -> None:
    async with proxied_url(postgres_url) as (proxy, url), opened(url, bounds=SHORT) as connections:
        await connections.fetch(ONE, {})
        proxy.fall_silent()
        began = time.monotonic()

        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connections.fetch(ONE, {})

        assert time.monotonic() - began < 0.5


async def test_a_silent_server_does_not_hold_up_the_close(postgres_url: str) -> None:
    async with proxied_url(postgres_url) as (proxy, url):
        async with opened(url) as connections:
            await connections.fetch(ONE, {})
            proxy.fall_silent()
            call = asyncio.create_task(connections.fetch(ONE, {}))
            await asyncio.sleep(0.1)
            began = time.monotonic()

        assert time.monotonic() - began < 8
        with pytest.raises(psycopg.OperationalError):
            await call


async def test_a_server_that_was_away_is_found_again(postgres_url: str) -> None:
    async with proxied_url(postgres_url) as (proxy, url), opened(url) as connections:
        await connections.fetch(ONE, {})
        await proxy.leave()
        for _ in range(2):
            with pytest.raises(psycopg.OperationalError):
                await connections.fetch(ONE, {})

        await proxy.come()

        assert await until_answered(connections, within=10) == [(1,)]


async def test_behind_a_pooler_nothing_is_left_in_a_session(postgres_url: str) -> None:
    prepared = Statement(b"SELECT count(*) FROM pg_prepared_statements")
    outside = Statement(b"SELECT reset_val FROM pg_settings WHERE name = 'statement_timeout'")
    async with opened(postgres_url, bounds=SHORT, pooler="transaction") as connections:
        inside = await connections.fetch(SHOW, {"name": "statement_timeout"})
        with pytest.raises(psycopg.errors.QueryCanceled):
            await connections.fetch(SLEEP, {"seconds": 30})
        count = await connections.fetch(prepared, {})
        default = await connections.fetch(outside, {})

    assert inside == [("1s",)]
    assert count == [(0,)]
    assert default == [("0",)]


async def test_a_program_without_logging_hears_no_warnings_of_the_pool(postgres_url: str) -> None:
    async with opened(postgres_url):
        handlers = logging.getLogger("psycopg.pool").handlers

    # With a handler of its own, what it warns of does not go to `logging.lastResort`.
    assert any(isinstance(handler, logging.NullHandler) for handler in handlers)
