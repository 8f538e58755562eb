"""The suite for a `TaskQueue`, through a server and both kinds of client, on each storage."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from grpc_doors import AioClientConformance, BlockingClientConformance
from leaseq.adapters.sqlite import open_sqlite
from leaseq.testing import Connect
from postgres_fixtures import PostgresFixtures


class TestAioClient(AioClientConformance):
    pass


class TestBlockingClient(BlockingClientConformance):
    pass


class TestAioClientOnSqlite(AioClientConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")


class TestAioClientOnPostgres(PostgresFixtures, AioClientConformance):
    pass
