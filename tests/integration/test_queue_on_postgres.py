from __future__ import annotations

from functools import partial

import pytest

from leaseq.adapters.postgres.storage import open_postgres
from leaseq.testing import Connect, TaskQueueConformance


class TestServicesOnPostgres(TaskQueueConformance):
    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str) -> Connect:
        return partial(open_postgres, postgres_url, schema=postgres_schema)
