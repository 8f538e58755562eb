from __future__ import annotations

import pytest

from leaseq.domain.ports import TaskQueue
from leaseq.testing import Services, TaskQueueConformance


class TestQueueOfOneProcess(TaskQueueConformance):
    """Merged calls, on the memory storage: the suite's own defaults."""


class TestServiceAlone(TaskQueueConformance):
    waits = False

    @pytest.fixture
    def queue(self, services: Services) -> TaskQueue:
        return services.service
