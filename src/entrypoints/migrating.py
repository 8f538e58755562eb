"""Brings the schema of a storage to the version that this leaseq works with."""

from __future__ import annotations

import asyncio
from typing import assert_never

from ..adapters.sqlite.migrate_file import migrate_file
from .extras import postgres_extra
from .urls import MemoryUrl, PostgresUrl, SqliteUrl, StorageUrl, ThirdPartyUrl


async def migrate(url: StorageUrl) -> list[str]:
    """
    Migrate the storage that `url` names, and return the names of what was applied.

    Storages in memory, and those of other packages, have nothing that we could migrate.

    Raises:
        StorageUnavailableError: the storage cannot be reached, or is in use.
        StorageError: its schema cannot be changed, or is newer than this leaseq; or what
            the storage needs is not installed.
    """
    match url:
        case MemoryUrl() | ThirdPartyUrl():
            return []
        case SqliteUrl(path=path):
            return await asyncio.to_thread(migrate_file, path)
        case PostgresUrl(dsn=dsn, schema=schema):
            with postgres_extra():
                from ..adapters.postgres.migrator import migrate as migrate_postgres  # noqa: PLC0415

            return await migrate_postgres(dsn, schema)
        case _:
            assert_never(url)
