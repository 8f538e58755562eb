"""
What the domain needs from outside, and what it offers.

Driven ports (`Clock`, `Ids`, `Jitter`, `WakeUp`, `TaskRepository`, `QueueRepository`,
`Storage`) are kept by adapters. Driving ports (`TaskQueue`, `TaskAdmin`, `Maintenance`)
are offered by the services, and by the gRPC client over the wire: a caller cannot tell
which one it holds.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Protocol

from .errors import TaskQueueError
from .ids import LeaseToken, QueueName, TaskId, TaskType
from .requests import (
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    PageRequest,
    Settlement,
    TaskFilter,
)
from .storing import (
    Added,
    Change,
    Demand,
    Found,
    PruneRule,
    Queue,
    QueueDepths,
    Replaced,
    Selection,
)
from .task import AttemptError, Task
from .views import Beat, Enqueued, LeasedTask, QueueView, TaskPage, TaskView

# --- driven: time, names, luck --------------------------------------------------------


class Clock(Protocol):
    """The one clock of everybody who shares a storage."""

    def now(self) -> datetime:
        """Return the time, in `datetime.UTC`, to the microsecond."""
        ...

    def uncertainty(self) -> timedelta:
        """Return by how much `now` may differ from the time of others who share the storage."""
        ...


class Ids(Protocol):
    """Makes names that nobody else makes."""

    def task_id(self) -> TaskId:
        """Return a new UUIDv7; later ones sort later, but for those of other processes."""
        ...

    def lease_token(self) -> LeaseToken:
        """Return a new token that cannot be guessed; 1 to 100 characters."""
        ...


class Jitter(Protocol):
    """Luck."""

    def draw(self) -> float:
        """Return a number from [0, 1), uniformly."""
        ...


class Signal(Protocol):
    """Told when one of the queues listened to may have something due."""

    async def wait(self, *, timeout: timedelta) -> bool:  # noqa: ASYNC109  the port has no loop
        """
        Return True once told since the last return, False after `timeout` or a nudge.

        A word that comes between two waits is not missed.
        """
        ...

    def nudge(self) -> None:
        """Let the wait that is under way return, or else the next one."""
        ...


class WakeUp(Protocol):
    """
    Carries the word that a queue may have something due.

    Only a hint: who listens polls as well.
    """

    def notify(self, queues: Collection[QueueName]) -> None:
        """Tell the listeners of these queues."""
        ...

    def listen(self, queues: Collection[QueueName]) -> AbstractContextManager[Signal]:
        """Listen from now on, so that a word between a look and a wait is not missed."""
        ...


# --- driven: storage ------------------------------------------------------------------


class TaskRepository(Protocol):
    """
    Where tasks are kept: stores, finds, claims atomically, compares and swaps.

    It never decides. Batches never fail as a whole for the sake of one item, and two
    batches cannot deadlock. An adapter keeps this contract when it passes
    `leaseq.testing.TaskRepositoryConformance`.

    Tasks read without payload have None for payload and result.

    Every method may raise StorageUnavailableError (nothing is known about what was done:
    `add` and `replace` may safely be repeated) and StorageError.
    """

    async def add(self, tasks: Sequence[Task]) -> Sequence[Added | Task | TaskQueueError]:
        """
        Store each task unless its queue holds its idempotency key already.

        Answers in the order of `tasks`: STORED, or the task that holds the key (without
        its payload). Adding a task again under its id answers STORED and changes
        nothing; where what has the id is of another queue or fingerprint, that is the
        answer (without its payload). Of tasks with one key, in one call or in many that
        race, one is stored; when its writer rolls back another takes its place.

        Per item: UnreadableTaskError (what holds the key cannot be read), StorageError
        (the storage refuses this one task).
        """
        ...

    async def claim(self, demand: Demand, *, now: datetime) -> Found:
        """
        Lease due tasks of one queue, in leasing order, with their payloads.

        As many as there are grants, fewer where tasks or `max_bytes` run out; nothing
        of a paused queue. Atomic: of any number of concurrent callers one gets a given
        task. Each is changed as `lifecycle.lease` says.
        """
        ...

    async def next_due(
        self, queues: Sequence[QueueName], types: Sequence[TaskType], *, now: datetime
    ) -> datetime | None:
        """
        Return the earliest `run_after` later than `now` of queued tasks of these queues.

        A hint: `types` may be ignored.
        """
        ...

    async def load(self, ids: Sequence[TaskId], *, with_payload: bool) -> Found:
        """Return the tasks with these ids, in no order; ids that nothing has are left out."""
        ...

    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        """
        For each change store `new` if the stored version is that of `old`.

        At most one change per task. Each change is atomic by itself; payloads are not
        written, and what else a task keeps for life (queue, type, key, priority, retry
        policy, time of creation) need not be. Answers in the order of `changes`.

        Per item: StorageError (the storage refuses this one change).
        """
        ...

    async def expired(self, *, now: datetime, limit: int) -> Found:
        """Return up to `limit` leased tasks whose lease has ended at `now`, without payload."""
        ...

    async def search(self, selection: Selection, *, limit: int, with_payload: bool) -> Found:
        """Return up to `limit` tasks, the greatest id first."""
        ...

    async def delete(self, tasks: Sequence[Task]) -> list[Replaced]:
        """For each task, none of them twice, remove what stands there with its version."""
        ...

    async def quarantine(
        self, ids: Sequence[TaskId], error: AttemptError, *, now: datetime
    ) -> None:
        """Make rows that cannot be read dead, without reading them; none that has ended."""
        ...

    async def stats(self, *, now: datetime) -> list[QueueDepths]:
        """Return how full each queue is, by name; depths are exact up to 10,000."""
        ...

    async def prune(self, rules: Sequence[PruneRule], *, limit: int) -> int:
        """
        Delete up to `limit` terminal tasks that a rule covers, and return how many.

        In one short transaction; fewer than `limit` means that none is left.
        """
        ...


class QueueRepository(Protocol):
    """Settings and state per queue, by compare-and-swap."""

    async def load(self, name: QueueName) -> Queue:
        """Return what is kept about a queue, or its defaults at version 0."""
        ...

    async def all(self) -> list[Queue]:
        """Return what is kept, by name; queues nobody spoke of are left out."""
        ...

    async def replace(self, old: Queue, new: Queue) -> bool:
        """Store `new` if the version of what is kept is that of `old`; say whether."""
        ...


class Storage(Protocol):
    """What an adapter gives to the services."""

    @property
    def tasks(self) -> TaskRepository:
        """Where tasks are kept."""
        ...

    @property
    def queues(self) -> QueueRepository:
        """Where settings and state of queues are kept."""
        ...

    @property
    def clock(self) -> Clock:
        """The clock that all who share the storage agree on."""
        ...

    async def tend(self) -> None:
        """Do what is to be done every few seconds, such as to measure the clock's offset."""
        ...


# --- driving --------------------------------------------------------------------------


class TaskQueue(Protocol):
    """
    What producers and workers do.

    Batches answer per item, in the caller's order: an item's error is returned in its
    place. What concerns a whole call is raised. Every call may raise
    StorageUnavailableError; `enqueue` with a task id or a key, `heartbeat` and `settle`
    may safely be repeated.
    """

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """
        Store up to 1000 tasks.

        Per item: InvalidArgumentError, IdempotencyKeyReusedError, TaskIdReusedError.

        Raises:
            InvalidArgumentError: more than 1000 tasks.
        """
        ...

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """
        Lease due tasks; an empty list means that nothing was due in time.

        A call that waits may be cancelled: what was leased meanwhile is given back.

        Raises:
            InvalidArgumentError: naming every fault.
        """
        ...

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """
        Extend leases, and learn which are lost or should stop.

        Per item: LeaseLostError, TaskNotFoundError, InvalidArgumentError, ContendedError.

        Raises:
            InvalidArgumentError: a bad worker id or duration, or more than 1000 leases.
        """
        ...

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """
        End up to 1000 attempts; None for each that is done.

        Per item: LeaseLostError, TaskNotFoundError, InvalidArgumentError, ContendedError.

        Raises:
            InvalidArgumentError: more than 1000 settlements.
        """
        ...

    async def get(self, task_id: str) -> TaskView:
        """
        Return a task with its payload.

        Raises:
            InvalidArgumentError: the id is no UUID.
            TaskNotFoundError: no task has it.
            UnreadableTaskError: the stored row is broken.
        """
        ...


class Undo(Protocol):
    """Takes back leases that never reached their worker. For doors, not for callers."""

    async def undo_leases(self, leases: Sequence[LeaseRef]) -> None:
        """Make the tasks due again, uncounted; leases that are not current are passed over."""
        ...


class TaskAdmin(Protocol):
    """What operators do."""

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        """
        Return one page of tasks, newest first, with errors.

        Raises:
            InvalidArgumentError: naming every fault.
        """
        ...

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """
        Start failed, dead and cancelled tasks anew; up to 1000.

        Per item: TaskNotDeadError, TaskNotFoundError, InvalidArgumentError, ContendedError.
        """
        ...

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """
        Call tasks off; up to 1000. A leased one learns it by its next heartbeat.

        Per item: TaskFinishedError, TaskNotFoundError, InvalidArgumentError, ContendedError.
        """
        ...

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """
        Remove tasks that have ended, and free their keys; up to 1000.

        Per item: TaskNotFinishedError, TaskNotFoundError, InvalidArgumentError,
        ContendedError.
        """
        ...

    async def list_queues(self) -> list[QueueView]:
        """Return every queue that holds a task or was spoken of, by name."""
        ...

    async def pause_queue(self, queue: str) -> None:
        """
        Stop leasing from a queue; leases that are out go on.

        Raises:
            InvalidArgumentError: it is no name.
        """
        ...

    async def resume_queue(self, queue: str) -> None:
        """
        Lease from a queue again.

        Raises:
            InvalidArgumentError: it is no name.
        """
        ...


class Maintenance(Protocol):
    """What has to be done now and then by somebody who holds the storage."""

    async def reap(self) -> int:
        """End leases whose time is over, and return how many."""
        ...

    async def prune(self) -> int:
        """Delete tasks that ended long ago, and return how many."""
        ...
