from __future__ import annotations

from leaseq.testing import TaskQueueConformance


class TestServices(TaskQueueConformance):
    """The services themselves, on the memory storage: the suite's own defaults."""
