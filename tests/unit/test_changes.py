from collections.abc import Awaitable, Callable, Sequence

import attrs
import pytest

from leaseq.adapters.memory import MemoryStorage, MemoryTaskRepository
from leaseq.domain import lifecycle
from leaseq.domain.changes import TaskChanger, Wish
from leaseq.domain.errors import (
    ContendedError,
    LeaseLostError,
    StorageError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from leaseq.domain.ids import LeaseToken, TaskId
from leaseq.domain.snapshots import MAX_ERROR_CHARACTERS, Snapshots
from leaseq.domain.storing import Change, Found, Replaced
from leaseq.domain.task import Status, Task
from leaseq.testing import (
    MINUTE,
    NOON,
    SECOND,
    ManualClock,
    a_task,
    a_task_id,
    an_error,
    leased_until,
)

TOKEN = LeaseToken("lease-1")


class WatchedTasks(MemoryTaskRepository):
    """A memory storage that counts its loads and answers its first replaces as a test says."""

    def __init__(self) -> None:
        super().__init__(MemoryStorage().queues)
        self.loads = 0
        self.replaces = 0
        self.first_answers: list[Replaced | TaskQueueError] = []
        self.unreadable: tuple[TaskId, ...] = ()
        self.after_next_load: Callable[[], Awaitable[object]] | None = None

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        self.loads += 1
        found = await super().load(ids, with_payload=with_payload)
        if (meanwhile := self.after_next_load) is not None:
            self.after_next_load = None
            await meanwhile()
        return attrs.evolve(found, unreadable=self.unreadable)

    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        self.replaces += 1
        if self.first_answers:
            return [self.first_answers.pop(0) for _ in changes]
        return await super().replace(changes)

    async def status(self, task: Task) -> Status:
        return (await super().load([task.id], with_payload=False)).tasks[0].status


@attrs.frozen
class Server:
    tasks: WatchedTasks = attrs.field(factory=WatchedTasks)
    clock: ManualClock = attrs.field(factory=ManualClock)
    snapshots: Snapshots = attrs.field(factory=Snapshots)

    async def make(self, *wishes: Wish) -> list[Task | TaskQueueError]:
        return await TaskChanger(self.tasks, self.clock, self.snapshots).make(wishes)

    async def holding(self, task: Task) -> Task:
        """Store a task and remember it."""
        await self.tasks.add([task])
        self.snapshots.keep(task)
        return task


def completing(task: Task) -> Wish:
    return Wish(
        task_id=task.id,
        decide=lambda task, now: lifecycle.complete(task, token=TOKEN, result=None, now=now),
    )


def extending(task: Task) -> Wish:
    return Wish(
        task_id=task.id,
        decide=lambda task, now: lifecycle.heartbeat(task, token=TOKEN, duration=MINUTE, now=now),
    )


def a_leased_task(payload: str = "{}") -> Task:
    return a_task(state=leased_until(NOON + 30 * SECOND), payload=payload)


async def test_what_a_snapshot_accepts_needs_no_load() -> None:
    server = Server()
    task = await server.holding(a_leased_task())

    [done] = await server.make(completing(task))

    assert isinstance(done, Task)
    assert await server.tasks.status(task) is Status.SUCCEEDED
    assert (server.tasks.loads, server.tasks.replaces) == (0, 1)


async def test_a_heartbeat_renews_the_snapshot() -> None:
    server = Server()
    task = await server.holding(a_leased_task())

    await server.make(extending(task))
    await server.make(completing(task))

    assert await server.tasks.status(task) is Status.SUCCEEDED
    assert (server.tasks.loads, server.tasks.replaces) == (0, 2)


async def test_what_a_stale_snapshot_accepts_is_decided_again() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    elsewhere = Server(tasks=server.tasks)
    await elsewhere.make(
        Wish(
            task_id=task.id,
            decide=lambda task, _: lifecycle.expire(task, jitter=0, now=NOON + MINUTE),
        )
    )

    [refused] = await server.make(completing(task))

    assert isinstance(refused, LeaseLostError)
    assert server.tasks.loads == 2


async def test_a_lease_renewed_through_another_server_is_not_refused_by_a_snapshot() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    elsewhere = Server(tasks=server.tasks)
    await elsewhere.make(extending(task))
    server.clock.advance(31 * SECOND)

    [done] = await server.make(completing(task))

    assert isinstance(done, Task)
    assert done.status is Status.SUCCEEDED


async def test_what_changes_nothing_is_decided_on_what_is_stored() -> None:
    server = Server()
    task = await server.holding(a_task(state=leased_until(NOON + 60 * MINUTE)))

    [same] = await server.make(extending(task))

    assert same == attrs.evolve(task, payload=None)
    assert (server.tasks.loads, server.tasks.replaces) == (1, 0)


async def test_a_busy_task_is_tried_again() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    server.tasks.first_answers = [Replaced.BUSY, Replaced.STALE]

    [done] = await server.make(completing(task))

    assert isinstance(done, Task)
    assert server.tasks.replaces == 3


async def test_the_third_try_is_the_last() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    server.tasks.first_answers = [Replaced.STALE, Replaced.BUSY, Replaced.STALE]

    [refused] = await server.make(completing(task))

    assert isinstance(refused, ContendedError)
    assert task.id in str(refused)
    assert await server.tasks.status(task) is Status.LEASED


async def test_a_change_the_storage_refuses_is_not_tried_again() -> None:
    server = Server()
    one, two = await server.holding(a_leased_task()), await server.holding(a_leased_task())
    server.tasks.first_answers = [StorageError("a trigger says no"), Replaced.STALE]

    refused, done = await server.make(completing(one), completing(two))

    assert isinstance(refused, StorageError)
    assert isinstance(done, Task)


async def test_wishes_for_one_task_are_met_in_their_order() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    other = await server.holding(a_leased_task())

    answers = await server.make(
        extending(task), completing(other), completing(task), completing(task), extending(task)
    )

    assert [type(answer) for answer in answers] == [Task, Task, Task, Task, LeaseLostError]
    assert server.tasks.replaces == 2


async def test_more_wishes_for_one_task_than_tries_are_all_met() -> None:
    server = Server()
    task = await server.holding(a_leased_task())

    answers = await server.make(*[completing(task)] * 7)

    assert all(isinstance(answer, Task) for answer in answers)


async def test_what_is_not_there_or_not_readable_is_answered_alone() -> None:
    server = Server()
    task = await server.holding(a_leased_task())
    broken = a_task_id(7)
    server.tasks.unreadable = (broken,)

    answers = await server.make(
        completing(a_leased_task()),
        Wish(task_id=broken, decide=completing(task).decide),
        completing(task),
    )

    assert [type(answer) for answer in answers] == [TaskNotFoundError, UnreadableTaskError, Task]


def test_a_snapshot_keeps_no_payload() -> None:
    snapshots = Snapshots()
    task = a_leased_task(payload='{"secret": 1}')

    snapshots.keep(task)

    assert snapshots.recall(task.id) == attrs.evolve(task, payload=None)


def test_the_oldest_snapshot_gives_way() -> None:
    snapshots = Snapshots(capacity=2)
    first, second, third = a_leased_task(), a_leased_task(), a_leased_task()

    for task in (first, second, first, third):
        snapshots.keep(task)

    assert snapshots.recall(second.id) is None
    assert snapshots.recall(first.id) is not None
    assert snapshots.recall(third.id) is not None


@pytest.mark.parametrize(("length", "kept"), [(0, True), (1, False)])
def test_a_task_with_a_long_history_is_not_kept(length: int, *, kept: bool) -> None:
    snapshots = Snapshots()
    task = a_leased_task()
    snapshots.keep(task)
    half = "x" * (MAX_ERROR_CHARACTERS // 2)

    snapshots.keep(attrs.evolve(task, errors=(an_error(half, traceback=half + "x" * length),)))

    assert (snapshots.recall(task.id) is not None) == kept


def test_nothing_is_known_of_a_forgotten_task() -> None:
    snapshots = Snapshots()
    task = a_leased_task()
    snapshots.keep(task)

    snapshots.forget(task.id)
    snapshots.forget(task.id)

    assert snapshots.recall(task.id) is None


async def test_a_lease_renewed_while_it_was_looked_up_is_not_refused_as_expired() -> None:
    server = Server()
    task = a_task(state=leased_until(NOON + SECOND))
    await server.tasks.add([task])

    async def renew() -> None:
        later = lifecycle.heartbeat(task, token=TOKEN, duration=MINUTE, now=NOON)
        await server.tasks.replace([Change(old=task, new=later)])
        server.clock.advance(2 * SECOND)

    server.tasks.after_next_load = renew

    [answer] = await server.make(completing(task))

    assert isinstance(answer, Task)
    assert answer.status is Status.SUCCEEDED


async def test_a_lease_that_ends_while_it_is_looked_up_is_refused_at_the_second_look() -> None:
    server = Server()
    task = a_task(state=leased_until(NOON + SECOND))
    await server.tasks.add([task])

    async def let_it_end() -> None:
        server.clock.advance(SECOND)

    server.tasks.after_next_load = let_it_end

    [answer] = await server.make(completing(task))

    assert isinstance(answer, LeaseLostError)
    assert server.tasks.loads == 2
