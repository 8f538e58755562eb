from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from leaseq.adapters.sqlite import open_sqlite
from leaseq.domain.ports import TaskRepository
from leaseq.domain.storing import PruneRule
from leaseq.domain.task import Dead, Status
from leaseq.testing import (
    HOUR,
    NOON,
    Connect,
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
    a_task,
)
from leaseq.testing.conformance.replace import stored


class TestSqliteTasks(TaskRepositoryConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")

    async def test_of_a_status_the_oldest_are_pruned_first(self, tasks: TaskRepository) -> None:
        ended = [a_task(state=Dead(at=NOON - hours * HOUR)) for hours in (2, 4, 1, 3)]
        await tasks.add(ended)

        number = await tasks.prune([PruneRule(status=Status.DEAD, finished_before=NOON)], limit=2)

        assert number == 2
        assert await stored(tasks, ended) == [ended[0], ended[2]]


class TestSqliteQueues(QueueRepositoryConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")


class TestServicesOnSqlite(TaskQueueConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")
