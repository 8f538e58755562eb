from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from leaseq.adapters.sqlite import open_sqlite
from leaseq.testing import (
    Connect,
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)


class TestSqliteTasks(TaskRepositoryConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")


class TestSqliteQueues(QueueRepositoryConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")


class TestServicesOnSqlite(TaskQueueConformance):
    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_sqlite, tmp_path / "tasks.db")
