"""What the page on operating says about roles, as processes of leaseq meet it."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING

import psycopg
import pytest

import leaseq
from leaseq.adapters.migrations import MigrationRefusedError
from leaseq.adapters.postgres.migrator import ensure_schema, migrate
from leaseq.domain.requests import Fail, LeaseRef, LeaseRequest
from leaseq.domain.task import TaskError
from leaseq.entrypoints.connection import open_blocking, run_blocking
from leaseq_process import ServerProcess, leaseq_server, run_leaseq
from postgres_roles import SCHEMA, Site

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("grants", ["the least", "for all time"])
def test_a_server_does_all_its_work_as_a_role_that_cannot_change_tables(
    site: Site, tmp_path: Path, grants: str
) -> None:
    if grants == "for all time":
        site.grant_for_all_time()
    migrated = run_leaseq(
        "migrate", "--storage", site.owner_url, "--schema", SCHEMA, "--json", cwd=tmp_path
    )
    if grants == "the least":
        site.grant_least()

    with leaseq_server(
        *("--storage", site.server_url, "--schema", SCHEMA, "--reaper-interval", "200ms"),
        cwd=tmp_path,
    ) as server:
        statuses = _a_whole_life(server)
        code = server.stop()

    assert json.loads(migrated.stdout)["applied"], migrated.stderr
    assert statuses == ["dead", "queued", "cancelled"]
    assert code == 0, server.log
    assert "permission denied" not in server.log


def _a_whole_life(server: ServerProcess) -> list[str]:
    """Do with a task what there is to be done, and return what it was after each turn."""
    with leaseq.connect(server.url) as client, open_blocking(server.url) as connection:
        request = LeaseRequest(
            worker_id="w", lease_duration=timedelta(seconds=1), wait=timedelta(seconds=20)
        )
        task_id = client.enqueue("t", max_attempts=2, retry_base=0.001, retry_cap=0.001).task.id
        client.pause_queue("default")
        client.resume_queue("default")
        run_blocking(connection.queue.lease(request))
        [leased] = run_blocking(connection.queue.lease(request))  # the reaper ended the first
        ref = LeaseRef(task_id=task_id, lease_token=leased.lease_token)
        error = TaskError(type="Boom", message="again")
        assert run_blocking(connection.queue.settle([Fail(ref=ref, error=error)])) == [None]
        statuses = [client.get(task_id).status]
        client.requeue(task_id)
        statuses.append(client.get(task_id).status)
        client.cancel(task_id)
        statuses.append(client.get(task_id).status)
        client.list_queues()
        client.delete(task_id)
        assert client.list_tasks().tasks == ()
    return [status.value for status in statuses]


def test_a_server_whose_role_may_not_make_its_schema_says_so(site: Site, tmp_path: Path) -> None:
    with leaseq_server("--storage", site.server_url, "--schema", "another", cwd=tmp_path) as server:
        code = server.ended()

    assert code == 1
    assert "permission denied for database" in server.log


async def test_a_server_may_not_start_before_the_owner_has_migrated(site: Site) -> None:
    with pytest.raises(MigrationRefusedError, match=r"GRANT CREATE ON SCHEMA.*leaseq migrate"):
        await ensure_schema(site.server_url, SCHEMA)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE leaseq.mine ()",
        "ALTER TABLE leaseq.tasks ADD COLUMN mine integer",
        "DROP TABLE leaseq.tasks",
        "TRUNCATE leaseq.tasks",
        "CREATE INDEX ON leaseq.tasks (id)",
        "CREATE TEMPORARY TABLE mine ()",
        "CREATE SCHEMA mine",
        "UPDATE leaseq.leaseq_migrations SET version = 0",
        "DELETE FROM leaseq.queues",
    ],
)
async def test_the_role_of_servers_can_do_nothing_else(site: Site, statement: str) -> None:
    await migrate(site.owner_url, SCHEMA)
    site.grant_least()

    with (
        psycopg.connect(site.server_url) as connection,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        connection.execute(statement.replace("leaseq.", '"q-1""x".', 1).encode())


def test_a_running_server_goes_on_when_a_newer_leaseq_migrates(site: Site, tmp_path: Path) -> None:
    storage = ("--storage", site.owner_url, "--schema", SCHEMA)
    with leaseq_server(*storage, cwd=tmp_path) as old, leaseq.connect(old.url) as client:
        before = client.enqueue("t").task.id

        site.execute(
            "ALTER TABLE leaseq.tasks ADD COLUMN of_the_future integer DEFAULT 1 NOT NULL;"
            "CREATE INDEX ON leaseq.tasks (of_the_future);"
            "INSERT INTO leaseq.leaseq_migrations VALUES (9999, '9999_come_later')"
        )

        after = client.enqueue("t").task.id
        seen = {task.id for task in client.list_tasks().tasks}
        with leaseq_server(*storage, cwd=tmp_path) as late:
            code = late.ended()

    assert seen == {before, after}
    assert code == 1
    assert "install a newer leaseq" in late.log


def test_a_server_takes_no_more_connections_than_the_page_says(site: Site, tmp_path: Path) -> None:
    with (
        leaseq_server("--storage", site.owner_url, "--schema", SCHEMA, cwd=tmp_path) as server,
        leaseq.connect(server.url) as client,
        psycopg.connect(site.admin_url, autocommit=True) as observer,
        ThreadPoolExecutor(40) as pool,
    ):
        first = client.enqueue("t").task.id
        calls = [pool.submit(client.get, first) for _ in range(800)]
        busy = 0
        while not all(call.done() for call in calls):
            busy = max(busy, _connections(observer))
        failed = [call for call in calls if call.exception()]

    assert 2 < busy <= 10
    assert failed == []


def _connections(observer: psycopg.Connection) -> int:
    [(count,)] = observer.execute(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE application_name LIKE 'leaseq%' AND datname = current_database()"
    ).fetchall()
    return int(count)
