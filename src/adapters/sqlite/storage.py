"""An SQLite file opened as a storage."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import attrs

from ...domain.errors import StorageError
from ...domain.ports import Clock
from ..clock import SystemClock
from ..migrations import MigrationError
from .connection import connect_reader, connect_writer
from .connection_thread import ConnectionThread
from .file import prepare
from .queue_repository import SqliteQueueRepository
from .task_repository import SqliteTaskRepository

_LOCK_WAIT: Final = timedelta(seconds=10)


@attrs.frozen(kw_only=True)
class SqliteStorage:
    """A `Storage` in an SQLite file, which other processes may use at the same time."""

    tasks: SqliteTaskRepository
    queues: SqliteQueueRepository
    clock: Clock
    _path: Path
    _inode: tuple[int, int] | None

    async def tend(self) -> None:
        """
        Check that the file is where it was.

        Raises:
            StorageError: it was moved, removed or replaced. What is stored now goes where
                nobody will look for it: stop, put the file back, and start again.
        """
        if _inode(self._path) != self._inode:
            raise StorageError("the database file was moved, removed or replaced while in use")


@asynccontextmanager
async def open_sqlite(
    path: str | os.PathLike[str], *, clock: Clock | None = None, lock_wait: timedelta = _LOCK_WAIT
) -> AsyncIterator[SqliteStorage]:
    """
    Open the file at `path`, a new one of mode 0600 where there is none, until the block ends.

    Args:
        path: relative to the working directory of now.
        clock: for tests; by default that of the computer, which all who share the file share.
        lock_wait: how long a call waits while other processes write.

    Raises:
        SchemaOutdatedError: the file was made by an older leaseq; migrate it first.
        SchemaTooNewError: it was made by a newer one.
        StorageUnavailableError: others have locked it, or SQLite has no room to work.
        StorageError: it cannot be used, saying why.
    """
    async with AsyncExitStack() as opened:
        try:
            file = prepare(path)
            writer = _thread("writer", connect_writer, file, lock_wait)
            opened.push_async_callback(writer.close)
            await writer.write(_nothing)
            inode = _inode(file)
        except MigrationError:
            raise
        except StorageError as error:
            raise type(error)(f"cannot use the SQLite file {os.fspath(path)!r}: {error}") from error
        reader = _thread("reader", connect_reader, file, lock_wait)
        opened.push_async_callback(reader.close)
        yield SqliteStorage(
            tasks=SqliteTaskRepository(writer, reader),
            queues=SqliteQueueRepository(writer),
            clock=clock or SystemClock(),
            path=file,
            inode=inode,
        )


class _Connect(Protocol):
    def __call__(self, path: Path, *, lock_wait: timedelta) -> sqlite3.Connection: ...


def _thread(name: str, connect: _Connect, path: Path, lock_wait: timedelta) -> ConnectionThread:
    return ConnectionThread(
        partial(connect, path, lock_wait=lock_wait),
        name=f"leaseq-sqlite-{name}",
        lock_wait=lock_wait,
    )


def _nothing(_: sqlite3.Connection) -> None:
    """Only to see that the file can be opened and locked for writing."""


def _inode(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
