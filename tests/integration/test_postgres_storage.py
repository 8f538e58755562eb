from __future__ import annotations

from functools import partial

import pytest

from leaseq.adapters.postgres.storage import open_postgres
from leaseq.testing import QueueRepositoryConformance, TaskRepositoryConformance
from leaseq.testing.conformance.fixtures import Connect


class _Postgres:
    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str) -> Connect:
        return partial(open_postgres, postgres_url, schema=postgres_schema)


class TestPostgresTasks(_Postgres, TaskRepositoryConformance):
    pass


class TestPostgresQueues(_Postgres, QueueRepositoryConformance):
    pass
