"""What the services make of broken rows, of refusals, and of others who are always faster."""

from collections.abc import Sequence
from datetime import datetime

import attrs
import pytest

from leaseq.adapters.memory import MemoryQueueRepository, MemoryStorage, MemoryTaskRepository
from leaseq.domain.admin import AdminService
from leaseq.domain.errors import (
    ContendedError,
    StorageError,
    StorageUnavailableError,
    TaskQueueError,
    UnreadableTaskError,
)
from leaseq.domain.ids import QueueName, TaskId
from leaseq.domain.maintenance import PRUNE_BATCH, REAP_BATCH, MaintenanceService
from leaseq.domain.requests import LeaseRequest, NewTask, PageRequest, TaskFilter
from leaseq.domain.service import QueueService
from leaseq.domain.storing import (
    Added,
    Change,
    Demand,
    Found,
    PruneRule,
    Queue,
    Replaced,
    Selection,
)
from leaseq.domain.task import AttemptError, Queued, Task, held_state
from leaseq.domain.views import Enqueued
from leaseq.testing import (
    DAY,
    EMAILS,
    IMAGES,
    NOON,
    SECOND,
    CountingIds,
    FixedJitter,
    ManualClock,
    ManualWakeUp,
    a_task,
    a_task_id,
    leased_until,
)

BROKEN = a_task_id(1)


class FaultyTasks(MemoryTaskRepository):
    """A memory storage with one row that cannot be read, and faults that a test sets."""

    def __init__(self) -> None:
        super().__init__(MemoryQueueRepository())
        self.unreadable: tuple[TaskId, ...] = ()
        self.quarantined: list[tuple[TaskId, AttemptError]] = []
        self.away: QueueName | None = None
        self.refusal: TaskQueueError | None = None
        self.outcome: Replaced | None = None
        self.pruned = [0]

    def _with_unreadable(self, found: Found) -> Found:
        broken, self.unreadable = self.unreadable, ()
        return attrs.evolve(found, unreadable=broken)

    async def add(self, tasks: Sequence[Task]) -> Sequence[Added | Task | TaskQueueError]:  # type: ignore[override]
        if self.refusal is not None:
            return [self.refusal for _ in tasks]
        return await super().add(tasks)

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        if demand.queue == self.away:
            raise StorageUnavailableError("away")
        return self._with_unreadable(await super().claim(demand, now=now))

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        return self._with_unreadable(await super().load(ids, with_payload=with_payload))

    async def expired(self, *, now: datetime, limit: int) -> Found:
        return self._with_unreadable(await super().expired(now=now, limit=limit))

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        found = await super().search(selection, limit=limit, with_payload=with_payload)
        return self._with_unreadable(found)

    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        if self.outcome is not None:
            return [self.outcome for _ in changes]
        return await super().replace(changes)

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        self.quarantined += [(task_id, error) for task_id in ids]
        await super().quarantine(ids, error, now=now)

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        assert (len(rules), limit) == (4, PRUNE_BATCH)
        return self.pruned.pop(0)


class ContendedQueues(MemoryQueueRepository):
    """Queues that somebody else always changes first."""

    tries = 0

    async def replace(self, old: Queue, new: Queue) -> bool:
        assert new.version == old.version + 1
        self.tries += 1
        return False


@attrs.frozen
class Server:
    tasks: FaultyTasks = attrs.field(factory=FaultyTasks)
    clock: ManualClock = attrs.field(factory=ManualClock)

    @property
    def queue(self) -> QueueService:
        return QueueService(
            tasks=self.tasks,
            clock=self.clock,
            ids=CountingIds(after=100),
            jitter=FixedJitter(),
            wake_up=ManualWakeUp(self.clock),
        )

    @property
    def maintenance(self) -> MaintenanceService:
        return MaintenanceService(
            tasks=self.tasks,
            clock=self.clock,
            jitter=FixedJitter(),
            wake_up=ManualWakeUp(self.clock),
        )

    def admin(self, queues: MemoryQueueRepository | None = None) -> AdminService:
        return AdminService(
            tasks=self.tasks,
            queues=queues or MemoryStorage().queues,
            clock=self.clock,
            wake_up=ManualWakeUp(self.clock),
        )


async def test_a_row_that_a_claim_cannot_read_is_set_aside_and_stops_nobody() -> None:
    server = Server()
    good = a_task()
    await server.tasks.add([good])
    server.tasks.unreadable = (BROKEN,)

    leased = await server.queue.lease(LeaseRequest(worker_id="w", queues=(EMAILS,)))

    assert [task.task.id for task in leased] == [good.id]
    [(task_id, error)] = server.tasks.quarantined
    assert (task_id, error.type, error.worker_id) == (BROKEN, "UnreadableTask", "w")


async def test_a_row_that_the_reaper_cannot_read_is_set_aside() -> None:
    server = Server()
    await server.tasks.add([a_task(state=leased_until(NOON))])
    server.tasks.unreadable = (BROKEN,)

    assert await server.maintenance.reap() == 2

    assert [task_id for task_id, _ in server.tasks.quarantined] == [BROKEN]


async def test_asking_for_a_row_that_cannot_be_read_says_so() -> None:
    server = Server()
    server.tasks.unreadable = (BROKEN,)

    with pytest.raises(UnreadableTaskError):
        await server.queue.get(BROKEN)


async def test_a_list_goes_on_past_a_row_that_cannot_be_read() -> None:
    server = Server()
    older, newer = a_task(id=a_task_id(0)), a_task(id=a_task_id(2))
    await server.tasks.add([older, newer])
    server.tasks.unreadable = (BROKEN,)

    first = await server.admin().list_tasks(TaskFilter(), PageRequest(size=2))
    second = await server.admin().list_tasks(TaskFilter(), PageRequest(cursor=first.next_cursor))

    assert [task.id for task in first.tasks] == [newer.id]
    assert [task.id for task in second.tasks] == [older.id]


async def test_an_empty_page_is_the_last() -> None:
    page = await Server().admin().list_tasks(TaskFilter(), PageRequest())

    assert (page.tasks, page.next_cursor) == ((), "")


async def test_what_the_first_queue_gave_is_delivered_when_the_second_is_away() -> None:
    server = Server()
    await server.tasks.add([a_task()])
    server.tasks.away = IMAGES
    request = LeaseRequest(worker_id="w", queues=(EMAILS, IMAGES), max_tasks=2, strict_order=True)

    assert len(await server.queue.lease(request)) == 1
    with pytest.raises(StorageUnavailableError):
        await server.queue.lease(request)


async def test_a_task_that_the_storage_refuses_is_refused_alone() -> None:
    server = Server()
    server.tasks.refusal = StorageError("no")

    [refused] = await server.queue.enqueue([NewTask(type="t")])

    assert not isinstance(refused, Enqueued)
    assert refused is server.tasks.refusal


async def test_expired_leases_that_others_reap_first_end_the_pass() -> None:
    server = Server()
    await server.tasks.add([a_task(state=leased_until(NOON)) for _ in range(REAP_BATCH)])
    server.tasks.outcome = Replaced.STALE

    assert await server.maintenance.reap() == 0


async def test_a_pass_reaps_more_than_one_batch_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    await server.tasks.add([a_task(state=leased_until(NOON)) for _ in range(2 * REAP_BATCH + 1)])

    assert await server.maintenance.reap() == 2 * REAP_BATCH + 1

    await server.tasks.add([a_task(state=leased_until(NOON)) for _ in range(2 * REAP_BATCH)])
    monkeypatch.setattr("leaseq.domain.maintenance._MOST_BATCHES", 1)
    assert await server.maintenance.reap() == REAP_BATCH


async def test_the_reaper_waits_for_as_long_as_the_clock_may_be_wrong() -> None:
    server = Server(clock=ManualClock(uncertainty=SECOND))
    await server.tasks.add([a_task(state=leased_until(NOON))])

    assert await server.maintenance.reap() == 0
    server.clock.advance(SECOND)
    assert await server.maintenance.reap() == 1


async def test_pruning_goes_on_until_a_batch_is_not_full(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()
    server.tasks.pruned = [PRUNE_BATCH, PRUNE_BATCH, 7]

    assert await server.maintenance.prune() == 2 * PRUNE_BATCH + 7

    monkeypatch.setattr("leaseq.domain.maintenance._MOST_BATCHES", 2)
    server.tasks.pruned = [PRUNE_BATCH] * 3
    assert await server.maintenance.prune() == 2 * PRUNE_BATCH


async def test_a_queue_that_others_always_change_first_is_contended() -> None:
    queues = ContendedQueues()

    with pytest.raises(ContendedError, match="queue emails"):
        await Server().admin(queues).pause_queue("emails")

    assert queues.tries == 3


def test_only_a_leased_task_is_held() -> None:
    held = leased_until(NOON + DAY)

    assert held_state(a_task(state=held)) is held
    with pytest.raises(ValueError, match="is queued"):
        held_state(a_task(state=Queued()))
