"""Every suite behind PgBouncer in transaction mode, which has two connections for everybody."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from grpc_doors import AioClientConformance
from leaseq.adapters.postgres import open_postgres
from leaseq.testing import (
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)

if TYPE_CHECKING:
    from leaseq.testing import Connect


class _BehindPgBouncer:
    @pytest.fixture
    def connect(self, pgbouncer_url: str, postgres_schema: str) -> Connect:
        return partial(open_postgres, pgbouncer_url, schema=postgres_schema, pooler="transaction")


class TestTasksBehindPgBouncer(_BehindPgBouncer, TaskRepositoryConformance):
    pass


class TestQueuesBehindPgBouncer(_BehindPgBouncer, QueueRepositoryConformance):
    pass


class TestServicesBehindPgBouncer(_BehindPgBouncer, TaskQueueConformance):
    pass


class TestAioClientBehindPgBouncer(_BehindPgBouncer, AioClientConformance):
    pass
