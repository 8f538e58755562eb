"""The client that blocks, on a server that keeps its tasks in a database."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest

from grpc_doors import BlockingClientConformance
from leaseq.adapters.grpc.client import open_aio_client
from leaseq.adapters.sqlite import open_sqlite
from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.requests import NewTask
from leaseq.domain.views import Enqueued
from leaseq.testing import Connect
from memory_server import memory_server
from postgres_fixtures import PostgresFixtures


class TestBlockingClientOnSqlite(BlockingClientConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")


class TestBlockingClientOnPostgres(PostgresFixtures, BlockingClientConformance):
    pass


async def test_a_server_that_was_away_for_long_serves_the_next_call(unused_tcp_port: int) -> None:
    task = NewTask(type="t")
    async with open_aio_client(f"127.0.0.1:{unused_tcp_port}") as client:
        with pytest.raises(StorageUnavailableError, match="refused"):
            await client.queue.enqueue([task])
        await asyncio.sleep(timedelta(seconds=20).total_seconds())  # the client tries ever less

        async with memory_server(port=unused_tcp_port):
            [answer] = await client.queue.enqueue([task])

    assert isinstance(answer, Enqueued)
