"""Whether a file is another program's, found out without a change of it."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Final, Literal
from urllib.parse import quote

from ...domain.errors import StorageError

_SHOWN: Final = 3

_NAMES: Final = "SELECT name FROM sqlite_schema WHERE name NOT LIKE 'sqlite^_%' ESCAPE '^'"


def require_ours(path: Path, *, lock_wait: timedelta) -> None:
    """
    Refuse a database with tables of others and none of ours; an empty one will do.

    Raises:
        StorageError: it is another program's.
        sqlite3.Error: it cannot be read.
    """
    try:
        names = _names(path, "ro", lock_wait)
    except sqlite3.OperationalError as error:
        if not error.sqlite_errorname.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            raise
        # Somebody died while writing, and whoever comes next has to undo it in order to read.
        names = _names(path, "rw", lock_wait)
    if names and "leaseq_migrations" not in names:
        shown = ", ".join(repr(name) for name in names[:_SHOWN])
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        raise StorageError(f"it is another program's database: it holds {shown}{more}")


def _names(path: Path, mode: Literal["ro", "rw"], lock_wait: timedelta) -> list[str]:
    uri = f"file:{quote(os.fsencode(path))}?mode={mode}"
    connection = sqlite3.connect(uri, uri=True, timeout=lock_wait.total_seconds())
    with closing(connection):
        connection.text_factory = lambda name: name.decode(errors="replace")
        return [name for (name,) in connection.execute(_NAMES)]
