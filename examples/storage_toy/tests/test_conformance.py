"""The suites of leaseq, and its model, on this storage."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from leaseq.testing import (
    Connect,
    Features,
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)
from leaseq.testing.model import ModelConformance
from leaseq_toy import open_toy


class _InOneFile:
    features = Features(durable=True, shared=False)

    @pytest.fixture
    def connect(self, tmp_path: Path) -> Connect:
        return partial(open_toy, tmp_path / "tasks.log")


class TestTasks(_InOneFile, TaskRepositoryConformance):
    pass


class TestQueues(_InOneFile, QueueRepositoryConformance):
    pass


class TestServices(_InOneFile, TaskQueueConformance):
    pass


class TestModel(_InOneFile, ModelConformance):
    pass
