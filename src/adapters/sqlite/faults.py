"""SQLite's errors as ours."""

from __future__ import annotations

import sqlite3
from typing import Final

from ...domain.errors import StorageError, StorageUnavailableError

REFUSALS: Final = (
    sqlite3.IntegrityError,  # a CHECK, a unique index, a trigger
    sqlite3.DataError,
    OverflowError,
    UnicodeEncodeError,
)
"""What is raised for the values of one row; other rows of the transaction are not concerned."""

_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL})
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_PASSING: Final = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_READONLY,
    }
)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether somebody else holds a lock, so that the same may work in a moment."""
    return _code(error) in _BUSY


def storage_error(error: sqlite3.Error) -> StorageError:
    """Return what callers are told for `error`."""
    code = _code(error)
    if code in _BUSY:
        return StorageUnavailableError("another process has locked the database file for too long")
    if code in _PASSING:
        return StorageUnavailableError(f"SQLite cannot work at the moment: {error}")
    if code in _DAMAGED:
        return StorageError(f"the database file is damaged, or none: {error}")
    if code == sqlite3.SQLITE_INTERRUPT:
        return StorageError("there is too much to read; ask for less, such as one queue or status")
    return StorageError(f"SQLite refuses: {error}")


def _code(error: sqlite3.Error) -> int | None:
    # Errors that the driver itself raises have no code. The low byte names the kind.
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
