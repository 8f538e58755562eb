"""Brings the schema of a storage to the version that this leaseq works with."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import assert_never

import attrs

from ..adapters.migrations import Database, read_migrations
from ..adapters.sqlite.migrate_file import migrate_file
from .extras import postgres_extra
from .urls import MemoryUrl, PostgresUrl, SqliteUrl, StorageUrl, ThirdPartyUrl


@attrs.frozen(kw_only=True)
class Migrated:
    """What a migration did to a storage."""

    applied: tuple[str, ...]
    """The names of the migrations, in order."""

    created: bool
    """Whether nothing of leaseq was there before."""


async def migrate(url: StorageUrl) -> Migrated:
    """
    Migrate the storage that `url` names.

    Storages in memory, and those of other packages, have nothing that we could migrate.

    Raises:
        StorageUnavailableError: the storage cannot be reached, or is in use.
        StorageError: its schema cannot be changed, or is newer than this leaseq; or what
            the storage needs is not installed.
    """
    match url:
        case MemoryUrl() | ThirdPartyUrl():
            return Migrated(applied=(), created=False)
        case SqliteUrl(path=path):
            return _migrated("sqlite", await asyncio.to_thread(migrate_file, path))
        case PostgresUrl(dsn=dsn, schema=schema):
            with postgres_extra():
                from ..adapters.postgres.migrator import migrate as migrate_postgres  # noqa: PLC0415

            return _migrated("postgres", await migrate_postgres(dsn, schema))
        case _:
            assert_never(url)


def _migrated(database: Database, applied: Sequence[str]) -> Migrated:
    first = read_migrations(database)[0]
    return Migrated(applied=tuple(applied), created=first.name in applied)
