from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from leaseq.adapters.postgres import open_postgres
from leaseq.testing import (
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)
from postgres_fixtures import PostgresFixtures

if TYPE_CHECKING:
    from leaseq.testing import Connect


class TestPostgresTasks(PostgresFixtures, TaskRepositoryConformance):
    pass


class TestPostgresQueues(PostgresFixtures, QueueRepositoryConformance):
    pass


class TestServicesOnPostgres(PostgresFixtures, TaskQueueConformance):
    pass


class _BehindPooler:
    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str) -> Connect:
        return partial(open_postgres, postgres_url, schema=postgres_schema, pooler="transaction")


class TestPostgresTasksBehindPooler(_BehindPooler, TaskRepositoryConformance):
    pass


class TestPostgresQueuesBehindPooler(_BehindPooler, QueueRepositoryConformance):
    pass
