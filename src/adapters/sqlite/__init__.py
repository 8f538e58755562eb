"""The storage for one machine: an SQLite file."""

from .storage import SqliteStorage, open_sqlite

__all__ = ["SqliteStorage", "open_sqlite"]
