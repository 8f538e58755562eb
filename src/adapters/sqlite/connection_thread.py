"""One thread, one connection: how blocking work is kept off the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Final, Literal, TypeVar

from ...domain.errors import StorageUnavailableError
from ..forks import FORKS
from .faults import is_busy, storage_error

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]
"""Reads or writes within one transaction. It may be run again after it was rolled back."""

_Begin = Literal["BEGIN", "BEGIN IMMEDIATE"]

_BETWEEN_TRIES: Final = 0.001
_LONGEST_READ: Final = 20.0
"""Seconds, both."""

_STEPS_BETWEEN_LOOKS: Final = 10_000
"""Of SQLite's virtual machine; some tenths of a millisecond."""


class ConnectionThread:
    """
    Does what is asked of it in turn, each piece of work in a transaction of its own.

    Where the caller of `read` or `write` is cancelled, work that has not begun never
    begins, and work that has not come to its commit is rolled back; else it stands. Either
    way the thread goes on with the next.

    A connection that failed is not used again. The next work is done with a new one. So it is
    after a fork: SQLite's notion of who holds which lock must not be in two processes at once.
    """

    def __init__(
        self, connect: Callable[[], sqlite3.Connection], *, name: str, lock_wait: timedelta
    ) -> None:
        self._connect = connect
        self._lock_wait = lock_wait.total_seconds()
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix=name)
        self._closed = False
        self._connection: sqlite3.Connection | None = None  # the thread's own
        FORKS.lay_down_before(self)

    def lay_down(self) -> None:
        """Close the connection until it is needed again; see `Portable.lay_down`."""
        with suppress(sqlite3.Error):
            self._drop_connection()

    async def write(self, work: Work[T]) -> T:
        """
        Do `work` as the one writer of the file, and return its answer once it is durable.

        Raises:
            StorageUnavailableError: others kept the file locked; or as for SQLite's errors.
            StorageError: SQLite failed; nothing was changed.
        """
        # A transaction that reads first and becomes a writer later is refused at once when
        # somebody wrote in between, however long it would wait.
        return await self._do("BEGIN IMMEDIATE", work)

    async def read(self, work: Work[T]) -> T:
        """
        Do `work` on the file as it is at one moment.

        Raises:
            StorageError: as for `write`; or it took longer than 20 seconds.
        """
        return await self._do("BEGIN", work)

    async def close(self) -> None:
        """Finish what was asked for and end; later calls are refused."""
        if self._closed:
            return
        self._closed = True
        done = self._executor.submit(self._end)
        self._executor.shutdown(wait=False)
        await asyncio.shield(asyncio.wrap_future(done))
        self._executor.shutdown(wait=True)  # the thread has nothing left to do

    async def _do(self, begin: _Begin, work: Work[T]) -> T:
        if self._closed:
            raise StorageUnavailableError("the storage is closed")
        abandoned = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._executor, self._try, begin, work, abandoned)
        except asyncio.CancelledError:
            abandoned.set()
            raise

    # --- in the thread

    def _try(self, begin: _Begin, work: Work[T], abandoned: threading.Event) -> T:
        waits_until = monotonic() + self._lock_wait
        while True:
            try:
                return self._transact(begin, work, abandoned)
            except sqlite3.Error as error:
                if is_busy(error) and monotonic() < waits_until:
                    abandoned.wait(_BETWEEN_TRIES)
                    if not abandoned.is_set():
                        continue
                raise storage_error(error) from error

    def _transact(self, begin: _Begin, work: Work[T], abandoned: threading.Event) -> T:
        with FORKS.call():
            if FORKS.cut_in_two:
                raise StorageUnavailableError("this process was forked in the middle of a call")
            return self._transact_undisturbed(begin, work, abandoned)

    def _transact_undisturbed(self, begin: _Begin, work: Work[T], abandoned: threading.Event) -> T:
        if self._connection is None:
            self._connection = self._connect()
        connection = self._connection
        try:
            connection.execute(begin)
            is_over = _reading_is_over(abandoned) if begin == "BEGIN" else None
            connection.set_progress_handler(is_over, _STEPS_BETWEEN_LOOKS)
            answer = work(connection)
            connection.execute("ROLLBACK" if abandoned.is_set() else "COMMIT")
        except BaseException as error:
            self._recover(connection, error)
            raise
        return answer

    def _recover(self, connection: sqlite3.Connection, error: BaseException) -> None:
        sound = not isinstance(error, sqlite3.Error) or is_busy(error)
        try:
            if sound and connection.in_transaction:
                connection.execute("ROLLBACK")
        except sqlite3.Error:
            sound = False
        if not sound:
            self._drop_connection()

    def _end(self) -> None:
        with FORKS.call():
            self._drop_connection()

    def _drop_connection(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def _reading_is_over(abandoned: threading.Event) -> Callable[[], bool]:
    ends_at = monotonic() + _LONGEST_READ
    return lambda: abandoned.is_set() or monotonic() > ends_at
