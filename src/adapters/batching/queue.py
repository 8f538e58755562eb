"""The `TaskQueue` that a server offers: the service, with its calls merged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final, Protocol

import attrs

from ...domain import validation
from ...domain.errors import OverloadedError, StorageError, TaskQueueError
from ...domain.ids import QueueName, TaskType
from ...domain.ports import Clock, Jitter, TaskQueue, WakeUp
from ...domain.requests import (
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Settlement,
)
from ...domain.views import Beat, Enqueued, LeasedTask, TaskView
from .coalescer import Coalescer
from .dealer import Desk, Group, LeaseSource

MAX_WAITERS: Final = 10_000

_GroupKey = tuple[tuple[QueueName, ...], frozenset[TaskType], bool]


class Service(TaskQueue, LeaseSource, Protocol):
    """What calls are merged for."""


class BatchingQueue:
    """
    A `TaskQueue` that merges concurrent calls to `service`, and waits for tasks.

    For one event loop. Whoever closes it waits for what is under way.
    """

    def __init__(
        self,
        service: Service,
        *,
        clock: Clock,
        wake_up: WakeUp,
        jitter: Jitter,
        linger: bool = True,
    ) -> None:
        self._service = service
        self._desk = Desk(
            source=service,
            clock=clock,
            wake_up=wake_up,
            jitter=jitter,
            give_back=self._give_back,
        )
        self._enqueues = Coalescer(service.enqueue, linger=linger)
        self._settles = Coalescer(service.settle, linger=linger)
        self._beats: dict[timedelta, Coalescer[LeaseRef, Beat | TaskQueueError]] = {}
        self._groups: dict[_GroupKey, Group] = {}
        self._waiters = 0
        self._undoing: set[asyncio.Task[None]] = set()

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store tasks; see `TaskQueue.enqueue`."""
        validation.batch_size("tasks", tasks)
        return await self._enqueues.submit(tasks)

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """End attempts; see `TaskQueue.settle`."""
        validation.batch_size("settlements", settlements)
        return await self._settles.submit(settlements)

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Extend leases; see `TaskQueue.heartbeat`. Merged with others of the same duration."""
        validation.batch_size("leases", request.leases)
        duration = validation.heartbeat_duration(request.worker_id, request.lease_duration)

        async def beat(leases: Sequence[LeaseRef]) -> list[Beat | TaskQueueError]:
            return await self._service.heartbeat(attrs.evolve(request, leases=tuple(leases)))

        beats = self._beats.setdefault(duration, Coalescer(beat, linger=False))
        try:
            return await beats.submit(request.leases)
        finally:
            if beats.idle:
                self._beats.pop(duration, None)

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Lease tasks, waiting for a first one; see `TaskQueue.lease`."""
        terms = validation.lease_terms(request)
        if self._waiters >= MAX_WAITERS:
            raise OverloadedError(
                "TOO_MANY_WAITERS",
                "the server has too many Lease calls waiting",
                retry_after=timedelta(seconds=5),
            )
        key = (terms.queues, frozenset(terms.types), terms.strict_order)
        group = self._groups.setdefault(key, Group(self._desk))
        self._waiters += 1
        try:
            return await group.lease(terms)
        finally:
            self._waiters -= 1
            if group.idle:
                self._groups.pop(key, None)

    async def get(self, task_id: str) -> TaskView:
        """Return a task; see `TaskQueue.get`."""
        return await self._service.get(task_id)

    async def undo_leases(self, leases: Sequence[LeaseRef]) -> None:
        """Take back leases that did not reach their worker; see `Undo`."""
        await self._service.undo_leases(leases)

    def dismiss_waiters(self) -> None:
        """Answer every Lease that waits with nothing, now."""
        for group in self._groups.values():
            group.dismiss()

    async def close(self) -> None:
        """Answer those who wait, and wait for everything that is under way."""
        for group in list(self._groups.values()):
            await group.close()
        while self._undoing:
            await asyncio.wait(self._undoing)
        await self._enqueues.close()
        await self._settles.close()
        for beats in list(self._beats.values()):
            await beats.close()

    def _give_back(self, tasks: Sequence[LeasedTask]) -> None:
        refs = [LeaseRef(task_id=task.task.id, lease_token=task.lease_token) for task in tasks]
        if refs:
            undoing = asyncio.create_task(self._undo(refs))
            self._undoing.add(undoing)
            undoing.add_done_callback(self._undoing.discard)

    async def _undo(self, refs: Sequence[LeaseRef]) -> None:
        # Where the storage is away the leases expire by themselves.
        with suppress(StorageError):
            await self._service.undo_leases(refs)
