from __future__ import annotations

import pytest

from leaseq.adapters.migrations import (
    Database,
    InvalidMigrationsError,
    Migration,
    SchemaOutdatedError,
    SchemaTooNewError,
    in_order,
    pending,
    read_migrations,
)

FIRST = Migration(version=1, name="0001_create_tasks", sql="one")
SECOND = Migration(version=2, name="0002_add_schedules", sql="two")


@pytest.mark.parametrize("database", ["postgres", "sqlite"])
def test_each_database_has_migrations_numbered_from_one(database: Database) -> None:
    migrations = read_migrations(database)

    assert [migration.version for migration in migrations] == list(range(1, len(migrations) + 1))
    assert migrations[0].name == "0001_create_tasks"
    assert "CREATE TABLE tasks" in migrations[0].sql


def test_both_databases_have_the_same_migrations() -> None:
    postgres = [migration.name for migration in read_migrations("postgres")]
    sqlite = [migration.name for migration in read_migrations("sqlite")]

    assert postgres == sqlite


def test_files_are_put_in_order() -> None:
    files = [("0002_add_schedules.sql", "two"), ("0001_create_tasks.sql", "one")]

    assert in_order(files) == (FIRST, SECOND)


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([], id="none at all"),
        pytest.param(["0002_add_schedules.sql"], id="the first is missing"),
        pytest.param(["0001_create_tasks.sql", "0003_add_schedules.sql"], id="a gap"),
        pytest.param(["0001_create_tasks.sql", "0001_create_queues.sql"], id="a number twice"),
        pytest.param(["0000_create_tasks.sql"], id="number zero"),
        pytest.param(["1_create_tasks.sql"], id="a short number"),
        pytest.param(["0001_tasks.sql"], id="no verb"),
        pytest.param(["0001_Create_Tasks.sql"], id="capitals"),
        pytest.param(["0001-create-tasks.sql"], id="dashes"),
    ],
)
def test_misnamed_and_missing_files_are_refused(names: list[str]) -> None:
    with pytest.raises(InvalidMigrationsError):
        in_order((name, "") for name in names)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        pytest.param(None, [FIRST, SECOND], id="nothing applied"),
        pytest.param(0, [FIRST, SECOND], id="version zero"),
        pytest.param(1, [SECOND], id="one behind"),
        pytest.param(2, [], id="up to date"),
    ],
)
def test_what_is_pending_comes_after_what_was_applied(
    found: int | None, expected: list[Migration]
) -> None:
    assert list(pending((FIRST, SECOND), found=found)) == expected


def test_a_newer_schema_is_refused() -> None:
    with pytest.raises(SchemaTooNewError, match=r"version 3 .* beyond 2"):
        pending((FIRST, SECOND), found=3)


def test_an_older_schema_is_refused_where_only_an_empty_one_may_be_changed() -> None:
    with pytest.raises(SchemaOutdatedError, match="leaseq migrate"):
        pending((FIRST, SECOND), found=1, only_if_empty=True)


def test_an_empty_schema_is_filled_where_only_an_empty_one_may_be_changed() -> None:
    assert list(pending((FIRST,), found=None, only_if_empty=True)) == [FIRST]
