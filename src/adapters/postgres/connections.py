"""
Connections to PostgreSQL, and how statements run on them.

Each statement is a transaction of its own, and bounded on every side: by the server, by a wait
for a connection, and by a hard stop for a server that has fallen silent. A caller that is
cancelled leaves at once; its statement ends by itself, as cancelling it would mean
to wait for the very server that does not answer.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from functools import partial
from os import dup
from typing import Any, Final, Literal

import attrs
import psycopg
from psycopg import AsyncConnection, AsyncRawCursor
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from ...domain.errors import StorageError
from .binary import adaptation
from .faults import breaks_connection, is_read_only
from .rows import Row
from .statements import PLANNER, Statement

Pooler = Literal["none", "transaction"]
"""What stands between us and the server: nothing, or a pooler such as PgBouncer that gives a
connection for a transaction. Then nothing is prepared and no setting outlives its transaction."""

_Pool = AsyncConnectionPool[AsyncConnection]
_Run = Callable[[AsyncConnection], Awaitable[list[Row]]]

# Of libpq; whoever names these in the DSN knows better. A dead peer is noticed after
# 10 + 3 * 5 seconds, also while it owes us an answer.
_CONNECTION: Final[Mapping[str, Any]] = {
    "application_name": "leaseq",
    "connect_timeout": 5,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,
}
_WAIT_SECONDS: Final = 5.0
_DRY_WAIT_SECONDS: Final = 1.0
_WAITERS: Final = 1000
# A failed connection is tried again after 1, 2 and 1 seconds, then by the next caller: the pool
# never sleeps longer than that, however long the server was away.
_RECONNECT_SECONDS: Final = 4.0
_GRACE: Final = timedelta(seconds=2)
"""What a server is given beyond `statement` to say that it stopped."""

_CLOSE_SECONDS: Final = 5.0
_UNHEARD: Final = logging.NullHandler()


@attrs.frozen(kw_only=True)
class Bounds:
    """How long one statement may take, on the server."""

    statement: timedelta = timedelta(seconds=10)
    lock: timedelta = timedelta(seconds=3)
    """Of it, the wait for one lock."""


class Connections:
    """
    Two pools of connections: a general one, and a small reserved one.

    The reserved one is for what keeps leases alive and ends them, which a storm of other
    calls must not starve.
    """

    def __init__(
        self,
        dsn: str,
        *,
        size: int,
        reserved: int,
        bounds: Bounds,
        pooler: Pooler,
        greet: Callable[[AsyncConnection], Awaitable[None]],
    ) -> None:
        """`greet` is called with each new connection, before anybody uses it."""
        self._settings = {**_bound_settings(bounds), **PLANNER}
        self._patience = (bounds.statement + _GRACE).total_seconds()
        self._pooled = pooler == "transaction"
        self._begin = _begin(self._settings)
        self._greet = greet
        parameters = self._parameters(dsn)
        self._general = self._pool(parameters, size=size, name="leaseq")
        self._reserved = self._pool(parameters, size=reserved, name="leaseq, reserved")
        self._at_work: set[asyncio.Task[list[Row]]] = set()
        self._lent: set[AsyncConnection] = set()
        self._dry: set[_Pool] = set()

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Keep connections for the length of the block."""
        # What a pool warns of while it is closed would reach the standard error of programs
        # that configured no logging, and alarm whoever reads it.
        logging.getLogger("psycopg.pool").addHandler(_UNHEARD)
        await self._general.open()
        await self._reserved.open()
        try:
            yield
        finally:
            await self._close()

    async def fetch(
        self,
        statement: Statement,
        parameters: Mapping[str, object],
        *,
        reserved: bool = False,
        prepare: bool = True,
    ) -> list[Row]:
        """
        Run a statement in a transaction of its own, and return its rows.

        Cancelled, it returns at once, and the statement may be carried out nevertheless.

        Raises:
            psycopg.Error: as the driver raises it.
        """
        pool = self._reserved if reserved else self._general
        run = partial(_run, statement=statement, parameters=parameters, prepare=prepare)
        work = asyncio.create_task(self._fetch(pool, run))
        self._at_work.add(work)
        work.add_done_callback(self._forget)
        # Unlike `await work`, this does not cancel the work when we are cancelled.
        await asyncio.wait((work,))
        return work.result()

    def _forget(self, work: asyncio.Task[list[Row]]) -> None:
        self._at_work.discard(work)
        if not work.cancelled():
            work.exception()  # marks it as seen, where the caller has gone

    async def _fetch(self, pool: _Pool, run: _Run) -> list[Row]:
        connection = await self._take(pool)
        try:
            with self._bounded(connection):
                if self._pooled:
                    return await self._in_transaction(connection, run)
                return await run(connection)
        except psycopg.Error as error:
            await self._judge(connection, error)
            raise
        finally:
            await pool.putconn(connection)

    async def _take(self, pool: _Pool) -> AsyncConnection:
        """Return a connection that was not hung up on us while it lay idle."""
        for _ in range(pool.max_size):
            connection = await self._wait_for(pool)
            if _is_quiet(connection):
                return connection
            await connection.close()
            await pool.putconn(connection)
        return await self._wait_for(pool)

    async def _wait_for(self, pool: _Pool) -> AsyncConnection:
        # Once somebody has waited in vain the next ones are told soon, until one is served.
        patience = _WAIT_SECONDS if pool not in self._dry else _DRY_WAIT_SECONDS
        try:
            connection = await pool.getconn(timeout=patience)
        except PoolTimeout:
            self._dry.add(pool)
            raise
        self._dry.discard(pool)
        return connection

    async def _in_transaction(self, connection: AsyncConnection, run: _Run) -> list[Row]:
        try:
            await connection.execute(self._begin)
            rows = await run(connection)
        except psycopg.Error:
            with suppress(psycopg.Error):
                await connection.execute("ROLLBACK")
            raise
        await connection.execute("COMMIT")
        return rows

    async def _judge(self, connection: AsyncConnection, error: psycopg.Error) -> None:
        if is_read_only(error):
            # Every other connection leads to the same server, which is no primary any more.
            await connection.close()
            await self._general.drain()
            await self._reserved.drain()
        elif breaks_connection(error):
            await connection.close()

    @contextmanager
    def _bounded(self, connection: AsyncConnection) -> Iterator[None]:
        timer = asyncio.get_running_loop().call_later(self._patience, _hang_up, connection)
        self._lent.add(connection)
        try:
            yield
        finally:
            self._lent.discard(connection)
            timer.cancel()

    async def _configure(self, connection: AsyncConnection) -> None:
        try:
            with self._bounded(connection):
                await self._greet(connection)
        except psycopg.Error:
            # The pool forgets about a connection that could not be made ready.
            await connection.close()
            raise

    def _pool(self, parameters: Mapping[str, Any], *, size: int, name: str) -> _Pool:
        return AsyncConnectionPool(
            kwargs=dict(parameters),
            min_size=1,
            max_size=size,
            open=False,
            configure=self._configure,
            max_waiting=_WAITERS,
            reconnect_timeout=_RECONNECT_SECONDS,
            name=name,
        )

    def _parameters(self, dsn: str) -> dict[str, Any]:
        given = _parsed(dsn)
        parameters: dict[str, Any] = {
            **_CONNECTION,
            **given,
            "client_encoding": "utf8",
            "autocommit": True,
            "context": adaptation(),
        }
        if self._pooled:
            return {**parameters, "prepare_threshold": None}
        options = "".join(f" -c {name}={value}" for name, value in self._settings.items())
        return {
            # A standby that was a primary is passed over, where the DSN names several hosts.
            "target_session_attrs": "read-write",
            **parameters,
            "options": f"{given.get('options', '')}{options}",
            "prepare_threshold": 0,
        }

    async def _close(self) -> None:
        if self._at_work:
            await asyncio.wait(set(self._at_work), timeout=_CLOSE_SECONDS)
        for connection in self._lent:
            _hang_up(connection)
        await self._general.close()
        await self._reserved.close()
        if self._at_work:
            await asyncio.wait(set(self._at_work))


def _is_quiet(connection: AsyncConnection) -> bool:
    # An idle server says nothing but its farewell. To look costs a microsecond, to ask it a
    # round trip.
    if connection.closed:
        return False
    poller = select.poll()
    poller.register(connection.fileno(), select.POLLIN)
    return not poller.poll(0)


async def _run(
    connection: AsyncConnection,
    *,
    statement: Statement,
    parameters: Mapping[str, object],
    prepare: bool,
) -> list[Row]:
    cursor = AsyncRawCursor(connection)
    await cursor.execute(
        statement.text,
        [parameters[name] for name in statement.names],
        # None leaves it to the connection, which prepares at once or, behind a pooler, never.
        prepare=None if prepare else False,
        binary=True,
    )
    return await cursor.fetchall()


def _hang_up(connection: AsyncConnection) -> None:
    """Let whoever waits on the connection see it end. Its descriptor stays open, and theirs."""
    with (
        suppress(OSError, psycopg.Error),
        socket.socket(fileno=dup(connection.fileno())) as line,
    ):
        line.shutdown(socket.SHUT_RDWR)


def _parsed(dsn: str) -> dict[str, Any]:
    try:
        return conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # Without the driver's words, which quote the DSN, password and all.
        raise StorageError("the DSN is not one that PostgreSQL understands") from None


def _bound_settings(bounds: Bounds) -> dict[str, str]:
    statement, lock = (
        f"{span // timedelta(milliseconds=1)}ms" for span in (bounds.statement, bounds.lock)
    )
    return {
        "statement_timeout": statement,
        "lock_timeout": lock,
        "idle_in_transaction_session_timeout": statement,
    }


def _begin(settings: Mapping[str, str]) -> bytes:
    """Return what opens a transaction with these settings, in one message to the server."""
    commands = ["BEGIN", *(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())]
    return "; ".join(commands).encode()
