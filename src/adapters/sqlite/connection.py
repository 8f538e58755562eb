"""Connections as everything here expects them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final
from urllib.parse import quote

from ...domain.errors import StorageError
from .foreign import require_ours
from .migrator import ensure_schema

_PRAGMAS: Final = (
    # Of a commit in WAL mode FULL syncs the log, so that what was acknowledged outlasts a
    # power cut; on macOS that takes a system call of its own.
    "PRAGMA synchronous = FULL",
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
    # Some builds overwrite what is deleted, which for pruning means to write all of it again.
    "PRAGMA secure_delete = FAST",
    # A log that a long read made grow is cut when it is next begun anew.
    "PRAGMA journal_size_limit = 67108864",
    "PRAGMA temp_store = MEMORY",
)

# SQLite sleeps up to 100 ms between two looks at a lock, and other processes that write
# without a pause slip in between. Asked again so early, it looks every few milliseconds.
_SHORT_WAIT: Final = "PRAGMA busy_timeout = 25"


def connect_writer(path: Path, *, lock_wait: timedelta) -> sqlite3.Connection:
    """
    Return a connection for everything, to a file with the schema that we know.

    Raises:
        MigrationError: as for `ensure_schema`.
        StorageError: the file is another program's, or cannot be used with a write-ahead log.
    """
    require_ours(path, lock_wait=lock_wait)
    with _closed_on_error(_connect(path, lock_wait)) as connection:
        ensure_schema(connection)
        connection.execute(_SHORT_WAIT)
        return connection


def connect_reader(path: Path, *, lock_wait: timedelta) -> sqlite3.Connection:
    """Return a connection that cannot write."""
    with _closed_on_error(_connect(path, lock_wait)) as connection:
        connection.execute("PRAGMA query_only = ON")
        connection.execute(_SHORT_WAIT)
        return connection


def open_file(path: Path, *, lock_wait: timedelta) -> sqlite3.Connection:
    """Return a connection as SQLite makes it, in autocommit mode, to a file that exists."""
    # Never made here: whoever lost the file while it was in use must not be given an empty one.
    uri = f"file:{quote(os.fsencode(path))}?mode=rw"
    return sqlite3.connect(
        uri,
        uri=True,
        timeout=lock_wait.total_seconds(),
        isolation_level=None,  # transactions begin and end where we say so
        check_same_thread=False,  # each has one thread, but another may close it before a fork
        cached_statements=256,
    )


def _connect(path: Path, lock_wait: timedelta) -> sqlite3.Connection:
    connection = open_file(path, lock_wait=lock_wait)
    with _closed_on_error(connection):
        mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise StorageError("its file system cannot share memory, which several readers need")
        for pragma in _PRAGMAS:
            connection.execute(pragma)
        # Text comes as bytes and is decoded row by row, so that one that is no UTF-8 spoils
        # its own row and not the whole answer.
        connection.text_factory = bytes
    return connection


@contextmanager
def _closed_on_error(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
