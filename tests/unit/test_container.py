from __future__ import annotations

import sys
from pathlib import Path

import pytest

from leaseq.domain.errors import StorageError
from leaseq.domain.requests import NewTask
from leaseq.domain.views import Enqueued
from leaseq.entrypoints.container import open_services
from leaseq.entrypoints.urls import MemoryUrl, PostgresUrl, SqliteUrl, StorageUrl


@pytest.fixture(params=["memory", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> StorageUrl:
    if request.param == "memory":
        return MemoryUrl()
    return SqliteUrl(path=tmp_path / "tasks.db")


async def test_every_storage_gets_services_that_share_it(url: StorageUrl) -> None:
    async with open_services(url) as services:
        [enqueued] = await services.queue.enqueue([NewTask(type="t", queue="q")])
        await services.admin.pause_queue("q")
        [queue] = await services.admin.list_queues()
        reaped = await services.maintenance.reap()
        pruned = await services.maintenance.prune()
        await services.storage.tend()

    assert isinstance(enqueued, Enqueued)
    assert queue.paused
    assert (reaped, pruned) == (0, 0)


async def test_each_opening_has_services_of_its_own() -> None:
    async with open_services(MemoryUrl()) as one, open_services(MemoryUrl()) as other:
        await one.queue.enqueue([NewTask(type="t")])

        assert await other.admin.list_queues() == []


async def test_a_missing_driver_is_told_with_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.startswith("leaseq.adapters.postgres.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(StorageError, match=r"pip install 'leaseq\[postgres\]'"):
        async with open_services(PostgresUrl(dsn="postgresql://h/db")):
            pass
