from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from leaseq.adapters.sqlite import connection_thread
from leaseq.adapters.sqlite.connection_thread import ConnectionThread
from leaseq.domain.errors import StorageError, StorageUnavailableError

SECOND: Final = timedelta(seconds=1)
INSERT: Final = "INSERT INTO t VALUES (1)"
INSERT_LARGE: Final = "INSERT INTO t SELECT zeroblob(100000)"
COUNT: Final = "SELECT count(*) FROM t"
FOR_EVER: Final = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n
"""


class Barrier:
    """Work that says when it has begun and goes on when it is let."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let = threading.Event()

    def insert(self, connection: sqlite3.Connection) -> str:
        connection.execute(INSERT)
        self.begun.set()
        assert self.let.wait(10)
        return "inserted"


async def test_work_is_answered_and_committed(thread: ConnectionThread) -> None:
    answer = await thread.write(lambda connection: connection.execute(INSERT).rowcount)

    assert answer == 1
    assert await _count(thread) == 1


async def test_work_that_fails_is_rolled_back_and_told(thread: ConnectionThread) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute(INSERT)
        connection.execute("SELECT * FROM nowhere")

    with pytest.raises(StorageError, match="nowhere") as told:
        await thread.write(fail)

    assert isinstance(told.value.__cause__, sqlite3.OperationalError)
    assert await _count(thread) == 0


async def test_an_error_of_the_work_itself_is_raised_as_it_is(thread: ConnectionThread) -> None:
    def fail(connection: sqlite3.Connection) -> None:
        connection.execute(INSERT)
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await thread.write(fail)

    assert await _count(thread) == 0


async def test_a_caller_cancelled_before_the_commit_has_changed_nothing(
    thread: ConnectionThread,
) -> None:
    barrier = Barrier()
    writing = asyncio.create_task(thread.write(barrier.insert))
    await asyncio.to_thread(barrier.begun.wait)

    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    barrier.let.set()

    assert await _count(thread) == 0


async def test_a_caller_cancelled_in_the_line_never_has_its_turn(thread: ConnectionThread) -> None:
    barrier, turns = Barrier(), []
    first = asyncio.create_task(thread.write(barrier.insert))
    second = asyncio.create_task(thread.write(lambda _: turns.append("second")))
    await asyncio.to_thread(barrier.begun.wait)

    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    barrier.let.set()

    assert await first == "inserted"
    assert await _count(thread) == 1
    assert turns == []


async def test_a_read_that_nobody_waits_for_ends(thread: ConnectionThread) -> None:
    begun = threading.Event()

    def read(connection: sqlite3.Connection) -> None:
        begun.set()
        connection.execute(FOR_EVER)

    reading = asyncio.create_task(thread.read(read))
    await asyncio.to_thread(begun.wait)

    reading.cancel()

    assert await _count(thread) == 0


async def test_a_read_that_takes_too_long_is_refused(
    thread: ConnectionThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_thread, "_LONGEST_READ", 0.01)

    with pytest.raises(StorageError, match="too much to read"):
        await thread.read(lambda connection: connection.execute(FOR_EVER).fetchone())

    assert await _count(thread) == 0


async def test_a_write_has_no_such_limit(
    thread: ConnectionThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_thread, "_LONGEST_READ", -1.0)
    some = FOR_EVER.replace("FROM n)", "FROM n WHERE i < 100000)")
    with pytest.raises(StorageError, match="too much to read"):
        await thread.read(lambda connection: connection.execute(some).fetchone())

    counted = await thread.write(lambda connection: connection.execute(some).fetchone())

    assert counted == (100_000,)


async def test_closing_finishes_what_was_asked_for(path: Path) -> None:
    thread = _thread(path)
    writes = [
        asyncio.create_task(thread.write(lambda connection: connection.execute(INSERT).rowcount))
        for _ in range(20)
    ]
    await asyncio.sleep(0)

    await thread.close()

    assert await asyncio.gather(*writes) == [1] * 20


async def test_after_closing_nothing_is_left_and_calls_are_refused(path: Path) -> None:
    before = threading.active_count()
    opened: list[sqlite3.Connection] = []
    thread = _thread(path, opened.append)
    await _count(thread)

    await thread.close()
    await thread.close()

    assert threading.active_count() == before
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        opened[0].interrupt()
    with pytest.raises(StorageUnavailableError, match="the storage is closed"):
        await _count(thread)


async def test_a_closing_that_is_cancelled_goes_on(path: Path) -> None:
    thread, barrier = _thread(path), Barrier()
    writing = asyncio.create_task(thread.write(barrier.insert))
    await asyncio.to_thread(barrier.begun.wait)
    closing = asyncio.create_task(thread.close())
    await asyncio.sleep(0)

    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    barrier.let.set()

    assert await writing == "inserted"


async def test_a_connection_that_failed_is_replaced(path: Path) -> None:
    opened: list[sqlite3.Connection] = []
    thread = _thread(path, opened.append)
    await thread.write(lambda connection: connection.execute("PRAGMA max_page_count = 2"))

    with pytest.raises(StorageUnavailableError, match="full"):
        await thread.write(lambda c: c.execute("INSERT INTO t SELECT zeroblob(100000)"))
    stored = await thread.write(
        lambda c: c.execute("INSERT INTO t SELECT zeroblob(100000)").rowcount
    )

    assert (stored, len(opened)) == (1, 2)
    await thread.close()


async def test_a_connection_that_cannot_be_made_is_made_later(path: Path) -> None:
    tries: list[None] = []

    def connect() -> sqlite3.Connection:
        tries.append(None)
        if len(tries) == 1:
            return sqlite3.connect("/nowhere/at/all.db")
        return _connect(path)

    thread = ConnectionThread(connect, name="test", lock_wait=SECOND)

    with pytest.raises(StorageUnavailableError, match="unable to open"):
        await _count(thread)

    assert await _count(thread) == 0
    await thread.close()


async def _count(thread: ConnectionThread) -> int:
    def count(connection: sqlite3.Connection) -> int:
        [number] = connection.execute(COUNT).fetchone()
        assert isinstance(number, int)
        return number

    return await thread.read(count)


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("CREATE TABLE IF NOT EXISTS t (v)")
    return connection


def _thread(
    path: Path, opened: Callable[[sqlite3.Connection], object] = lambda _: None
) -> ConnectionThread:
    def connect() -> sqlite3.Connection:
        connection = _connect(path)
        opened(connection)
        return connection

    return ConnectionThread(connect, name="test", lock_wait=SECOND)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "test.db"


@pytest.fixture
async def thread(path: Path) -> AsyncIterator[ConnectionThread]:
    thread = _thread(path)
    yield thread
    await thread.close()
