from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from leaseq.adapters.postgres import open_postgres
from leaseq.domain.ports import TaskRepository
from leaseq.domain.storing import PruneRule
from leaseq.domain.task import Dead, Status
from leaseq.testing import (
    HOUR,
    NOON,
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
    a_task,
)
from leaseq.testing.conformance.replace import stored
from postgres_fixtures import PostgresFixtures

if TYPE_CHECKING:
    from leaseq.testing import Connect


class TestPostgresTasks(PostgresFixtures, TaskRepositoryConformance):
    async def test_of_a_status_the_oldest_are_pruned_first(self, tasks: TaskRepository) -> None:
        ended = [a_task(state=Dead(at=NOON - hours * HOUR)) for hours in (2, 4, 1, 3)]
        await tasks.add(ended)

        number = await tasks.prune([PruneRule(status=Status.DEAD, finished_before=NOON)], limit=2)

        assert number == 2
        assert await stored(tasks, ended) == [ended[0], ended[2]]


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
