"""For people who add a storage: the suites and builders. Needs pytest and pytest-asyncio."""

import pytest

# Before the suites are imported: a failing assert would else say nothing but AssertionError.
pytest.register_assert_rewrite(f"{__name__}.conformance")

from .builders import (  # noqa: E402
    DAY,
    EMAILS,
    HOUR,
    IMAGES,
    MICROSECOND,
    MINUTE,
    NOON,
    RESIZE,
    SECOND,
    SEND,
    a_demand,
    a_lease,
    a_task,
    a_task_id,
    an_error,
    leased_until,
    some_grants,
)
from .conformance.fixtures import Connect  # noqa: E402
from .conformance.queue_fixtures import Services  # noqa: E402
from .conformance.queue_repository import QueueRepositoryConformance  # noqa: E402
from .conformance.task_queue import TaskQueueConformance  # noqa: E402
from .conformance.task_repository import TaskRepositoryConformance  # noqa: E402
from .fakes import (  # noqa: E402
    CountingIds,
    FixedJitter,
    ManualClock,
    ManualTime,
    ManualWakeUp,
    RealTime,
    Time,
)
from .features import Features  # noqa: E402

__all__ = [
    "DAY",
    "EMAILS",
    "HOUR",
    "IMAGES",
    "MICROSECOND",
    "MINUTE",
    "NOON",
    "RESIZE",
    "SECOND",
    "SEND",
    "Connect",
    "CountingIds",
    "Features",
    "FixedJitter",
    "ManualClock",
    "ManualTime",
    "ManualWakeUp",
    "QueueRepositoryConformance",
    "RealTime",
    "Services",
    "TaskQueueConformance",
    "TaskRepositoryConformance",
    "Time",
    "a_demand",
    "a_lease",
    "a_task",
    "a_task_id",
    "an_error",
    "leased_until",
    "some_grants",
]
