"""Migrates an SQLite file that may be too old to be opened as a storage."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from typing import Final

from ...domain.errors import StorageError
from .connection import open_file
from .faults import is_busy, storage_error
from .file import prepare
from .foreign import require_ours
from .migrator import migrate

_LOCK_WAIT: Final = timedelta(seconds=60)


def migrate_file(path: str | os.PathLike[str], *, lock_wait: timedelta = _LOCK_WAIT) -> list[str]:
    """
    Bring the schema of the file at `path` up to date, and return the names of what was applied.

    Blocks. Where there is no file, one with the schema is made.

    Raises:
        SchemaTooNewError: it was made by a newer leaseq.
        StorageUnavailableError: others have locked it for longer than `lock_wait`.
        StorageError: it cannot be used or migrated, saying why.
    """
    try:
        file = prepare(path)
        require_ours(file, lock_wait=lock_wait)
        with closing(open_file(file, lock_wait=lock_wait)) as connection:
            return migrate(connection)
    except sqlite3.Error as error:
        if is_busy(error):
            raise storage_error(error) from error
        raise StorageError(f"cannot open the SQLite file {os.fspath(path)!r}: {error}") from error
