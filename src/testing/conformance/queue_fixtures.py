"""What the suite for a `TaskQueue` starts from, and the words in which it asks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import ClassVar

import attrs
import pytest
import pytest_asyncio

from ...adapters.batching.queue import BatchingQueue
from ...adapters.memory import MemoryStorage
from ...domain.admin import AdminService
from ...domain.errors import InvalidArgumentError, LeaseLostError, LostReason
from ...domain.maintenance import MaintenanceService
from ...domain.ports import Clock, Ids, Maintenance, Storage, TaskAdmin, TaskQueue, WakeUp
from ...domain.requests import LeaseRef, LeaseRequest, NewTask, Settlement
from ...domain.service import QueueService
from ...domain.views import Enqueued, LeasedTask, TaskView
from ..fakes import CountingIds, FixedJitter, ManualTime, ManualWakeUp, Time
from .fixtures import Connect, StorageFixtures

QUICK = NewTask(
    type="send", retry_base=timedelta(milliseconds=1), retry_cap=timedelta(milliseconds=1)
)
"""A task that is due again `BACKOFF` after it failed, at the latest."""

BACKOFF = timedelta(milliseconds=2)


@attrs.frozen(kw_only=True)
class Services:
    """What one process offers: its queue, and the service that it is around."""

    queue: BatchingQueue
    service: QueueService
    admin: AdminService
    maintenance: MaintenanceService


class QueueFixtures(StorageFixtures):
    """
    Override what differs: a `TaskQueue` in this process needs nothing at all.

    - another storage: supply `connect` or `storage`, as for the suite of a storage;
    - a door in front of the services, such as a client and its server: supply `queue` and
      `admin`, built upon `services`;
    - a process whose clock cannot be moved: supply `queue`, `admin`, `maintenance` and a
      `time` (`RealTime`), and set `manual_time` to False.
    """

    manual_time: ClassVar[bool] = True
    """Whether time passes only when the test says so; else tests of exact moments are skipped."""

    waits: ClassVar[bool] = True
    """Whether `lease` waits for a first task; not, where a `BatchingQueue` around it does."""

    @pytest.fixture
    def time(self) -> Time:
        """Return the time of the queue under test."""
        return ManualTime()

    @pytest.fixture
    def connect(self) -> Connect:
        """Return what opens a memory storage."""
        return _open_memory

    @pytest_asyncio.fixture
    async def services(self, storage: Storage, time: Time) -> AsyncIterator[Services]:
        """Return what one process offers on `storage`, with known ids and luck."""
        assert isinstance(time, ManualTime), "with another `time` supply `queue` and the others"
        async with serving(storage, CountingIds(), time.clock, time.wake_up) as services:
            yield services

    @pytest_asyncio.fixture
    async def elsewhere(self, storage: Storage, time: Time) -> AsyncIterator[Services]:
        """Return what another process offers on the same storage."""
        if not isinstance(time, ManualTime):
            pytest.skip("only with manual time is there a second process")
        ids = CountingIds(after=1_000_000)
        async with serving(storage, ids, time.clock, ManualWakeUp(time.clock)) as services:
            yield services

    @pytest.fixture
    def queue(self, services: Services) -> TaskQueue:
        """Return the queue under test."""
        return services.queue

    @pytest.fixture
    def admin(self, services: Services) -> TaskAdmin:
        """Return the operators' side of the queue under test."""
        return services.admin

    @pytest.fixture
    def maintenance(self, services: Services) -> Maintenance:
        """Return what is done now and then on the same storage."""
        return services.maintenance

    def needs_manual_time(self) -> None:
        """Skip the test where time cannot be stopped."""
        if not self.manual_time:
            pytest.skip(f"{type(self).__name__}.manual_time is False: no moment is exact")


@asynccontextmanager
async def _open_memory() -> AsyncIterator[Storage]:
    yield MemoryStorage()


@asynccontextmanager
async def serving(
    storage: Storage, ids: Ids, clock: Clock, wake_up: WakeUp
) -> AsyncIterator[Services]:
    """Offer what one process offers on `storage`, with luck that is always the same."""
    tasks, jitter = storage.tasks, FixedJitter()
    service = QueueService(tasks=tasks, clock=clock, ids=ids, jitter=jitter, wake_up=wake_up)
    services = Services(
        queue=BatchingQueue(service, clock=clock, wake_up=wake_up, jitter=jitter),
        service=service,
        admin=AdminService(tasks=tasks, queues=storage.queues, clock=clock, wake_up=wake_up),
        maintenance=MaintenanceService(tasks=tasks, clock=clock, jitter=jitter, wake_up=wake_up),
    )
    try:
        yield services
    finally:
        await services.queue.close()


async def enqueue(queue: TaskQueue, *new: NewTask) -> list[TaskView]:
    """Enqueue tasks that are sound and new."""
    answers = await queue.enqueue(new)
    made = [answer for answer in answers if isinstance(answer, Enqueued)]
    assert [answer.created for answer in made] == [True] * len(new), answers
    return [answer.task for answer in made]


async def enqueue_one(queue: TaskQueue, new: NewTask = QUICK) -> TaskView:
    """Enqueue a task that is sound and new."""
    [task] = await enqueue(queue, new)
    return task


async def lease(
    queue: TaskQueue,
    *,
    worker_id: str = "worker-1",
    queues: Sequence[str] = (),
    max_tasks: int = 1,
    lease_duration: timedelta | None = None,
) -> list[LeasedTask]:
    """Lease what is due now."""
    request = LeaseRequest(
        worker_id=worker_id,
        queues=tuple(queues),
        max_tasks=max_tasks,
        lease_duration=lease_duration,
    )
    return await queue.lease(request)


async def lease_one(
    queue: TaskQueue, *, worker_id: str = "worker-1", lease_duration: timedelta | None = None
) -> LeasedTask:
    """Lease a task of the default queue that is due now."""
    [leased] = await lease(queue, worker_id=worker_id, lease_duration=lease_duration)
    return leased


def ref(leased: LeasedTask) -> LeaseRef:
    """Return what names the lease in later calls."""
    return LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token)


async def settle(queue: TaskQueue, settlement: Settlement) -> object:
    """End one attempt, and return the error in its place or None."""
    [answer] = await queue.settle([settlement])
    return answer


def lost(answer: object) -> LostReason:
    """Return why a lease was lost."""
    assert isinstance(answer, LeaseLostError), answer
    return answer.reason


def faults(answer: object) -> list[str]:
    """Return the fields that a refusal names."""
    assert isinstance(answer, InvalidArgumentError), answer
    assert all(violation.description for violation in answer.violations)
    return [violation.field for violation in answer.violations]
