"""
The numbered SQL files that make and change the schema of a database.

Files are named `NNNN_verb_noun.sql` and numbered from 1 without a gap; the version of a
schema is the number of the last one applied. Nothing here talks to a database.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from importlib import resources
from typing import Literal, final

import attrs

from ..domain.errors import StorageError

Database = Literal["postgres", "sqlite"]
"""The folders under `migrations`."""

# Not `__name__` up to the first dot: the package may have been vendored into another.
_PACKAGE = __name__.removesuffix(".adapters.migrations") + ".migrations"
_FILE_NAME = re.compile(r"(?P<version>[0-9]{4})(_[a-z0-9]+){2,}\.sql")


class MigrationError(StorageError):
    """The schema of the storage is not, and could not be made, what this leaseq works with."""


@final
class InvalidMigrationsError(MigrationError):
    """The migration files that came with this leaseq are misnamed or incomplete."""


@final
class MigrationRefusedError(MigrationError):
    """The database refused a migration; nothing of it was kept."""


@final
class SchemaOutdatedError(MigrationError):
    """The schema is populated and older than this leaseq."""

    def __init__(self, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the schema is at version {found} and this leaseq works with {known}:"
            " run `leaseq migrate` first"
        )


@final
class SchemaTooNewError(MigrationError):
    """A newer leaseq has migrated the schema."""

    def __init__(self, *, found: int, known: int) -> None:
        self.found = found
        self.known = known
        super().__init__(
            f"the schema is at version {found} and this leaseq knows none beyond {known}:"
            " install a newer leaseq"
        )


@attrs.frozen(kw_only=True)
class Migration:
    """One file: the step to `version` from the one before it."""

    version: int
    name: str
    """The file's name without `.sql`."""

    sql: str


def read_migrations(database: Database) -> tuple[Migration, ...]:
    """
    Return the migrations that came with this leaseq, by version.

    Raises:
        InvalidMigrationsError: a file is misnamed, or a number is missing or taken twice.
    """
    folder = resources.files(_PACKAGE).joinpath(database)
    return in_order(
        (file.name, file.read_text("utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".sql")
    )


def in_order(files: Iterable[tuple[str, str]]) -> tuple[Migration, ...]:
    """
    Return the migrations that files (name, text) hold, by version.

    Raises:
        InvalidMigrationsError: a file is misnamed, or a number is missing or taken twice.
    """
    migrations: list[Migration] = []
    for name, text in sorted(files):
        match = _FILE_NAME.fullmatch(name)
        if match is None:
            raise InvalidMigrationsError(f"migration {name!r} is not named NNNN_verb_noun.sql")
        version = int(match["version"])
        if version != len(migrations) + 1:
            raise InvalidMigrationsError(
                f"migration {name!r} stands where number {len(migrations) + 1:04} should"
            )
        migrations.append(Migration(version=version, name=name.removesuffix(".sql"), sql=text))
    if not migrations:
        raise InvalidMigrationsError("there are no migrations")
    return tuple(migrations)


def pending(
    migrations: Sequence[Migration], *, found: int | None, only_if_empty: bool = False
) -> Sequence[Migration]:
    """
    Return what is to be applied to a schema at version `found` (None: nothing was ever applied).

    Args:
        only_if_empty: refuse to change a schema that holds something already.

    Raises:
        SchemaTooNewError: the schema is newer than the last of `migrations`.
        SchemaOutdatedError: it is older, not empty, and `only_if_empty`.
    """
    known = len(migrations)
    if found is None:
        return migrations
    if found > known:
        raise SchemaTooNewError(found=found, known=known)
    if found < known and only_if_empty:
        raise SchemaOutdatedError(found=found, known=known)
    return migrations[found:]
