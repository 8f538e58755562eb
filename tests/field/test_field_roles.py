"""Every suite as the role of servers, with the least grants."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pytest

from leaseq.adapters.postgres import open_postgres
from leaseq.adapters.postgres.migrator import migrate
from leaseq.testing import (
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)
from pgbouncer import pgbouncer
from postgres_roles import SCHEMA, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq.testing import Connect


class _AsServer:
    @pytest.fixture
    def migrated(self, site: Site) -> Site:
        # In a thread: some tests ask for this fixture while their loop runs.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, migrate(site.owner_url, SCHEMA)).result()
        site.grant_least()
        return site

    @pytest.fixture
    def connect(self, migrated: Site) -> Connect:
        return partial(open_postgres, migrated.server_url, schema=SCHEMA)


class _AsServerBehindPgBouncer(_AsServer):
    @pytest.fixture
    def connect(self, migrated: Site) -> Iterator[Connect]:
        with pgbouncer(migrated.server_url) as url:
            yield partial(open_postgres, url, schema=SCHEMA, pooler="transaction")


class TestTasksAsServer(_AsServer, TaskRepositoryConformance):
    pass


class TestQueuesAsServer(_AsServer, QueueRepositoryConformance):
    pass


class TestServicesAsServer(_AsServer, TaskQueueConformance):
    pass


class TestServicesAsServerBehindPgBouncer(_AsServerBehindPgBouncer, TaskQueueConformance):
    pass
