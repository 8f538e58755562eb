from __future__ import annotations

import pytest

from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.ports import Storage
from leaseq.testing import Features, QueueRepositoryConformance, TaskRepositoryConformance


class TestMemoryTasks(TaskRepositoryConformance):
    features = Features(durable=False, shared=False)

    @pytest.fixture
    def storage(self) -> Storage:
        return MemoryStorage()


class TestMemoryQueues(QueueRepositoryConformance):
    @pytest.fixture
    def storage(self) -> Storage:
        return MemoryStorage()
