"""Clients that break off their Lease calls at random moments while tasks arrive."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path

import attrs

import leaseq
from leaseq.adapters.grpc.client import GrpcTaskQueue, open_aio_client
from leaseq.domain.requests import LeaseRequest
from leaseq_process import ServerProcess, leaseq_server
from trials.places import twice
from trials.tasks import all_tasks, naps, stored

_LEASE = timedelta(minutes=10)
"""None runs out meanwhile: what is leased in the end was given to somebody."""

_WAIT = timedelta(seconds=5)
_PATIENCE = 0.2
_ARE_SETTLED_WITHIN = 10.0
"""For replies on their way, and for what has to be given back."""


@attrs.frozen(kw_only=True)
class Outcome:
    """Where the tasks are in the end."""

    tasks: int
    cancelled: int
    """Calls that were broken off."""

    held: int
    """Tasks that clients hold."""

    held_twice: set[str]
    statuses: Counter[str]
    leased_by_nobody: set[str]
    held_but_not_leased: set[str]
    counted: Counter[int]
    """Tasks by their attempts."""


def cancel_leases(
    storage: str, folder: Path, *, clients: int, seconds: float, luck: random.Random
) -> Outcome:
    """Let clients cancel Leases for so long."""
    with leaseq_server("--storage", storage, cwd=folder) as server:
        crowd = asyncio.run(_crowd(server, clients, seconds, luck))
        with leaseq.connect(server.url) as client:
            return _outcome(client, crowd)


@attrs.define
class _Client:
    """One that leases, changes its mind, and remembers what it got."""

    queue: GrpcTaskQueue
    name: str
    luck: random.Random
    held: list[str] = attrs.field(factory=list)
    cancelled: int = 0

    async def lease_and_cancel(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            request = LeaseRequest(
                worker_id=self.name,
                queues=("work",),
                max_tasks=self.luck.randint(1, 3),
                lease_duration=_LEASE,
                wait=_WAIT,
            )
            call = asyncio.create_task(self.queue.lease(request))
            await asyncio.sleep(self.luck.uniform(0, _PATIENCE))
            call.cancel()
            try:
                self.held += [leased.task.id for leased in await call]
            except asyncio.CancelledError:
                self.cancelled += 1


async def _crowd(
    server: ServerProcess, clients: int, seconds: float, luck: random.Random
) -> list[_Client]:
    async with AsyncExitStack() as stack:
        crowd: list[_Client] = []
        for number in range(clients):
            opened = await stack.enter_async_context(open_aio_client(server.address))
            own_luck = random.Random(luck.random())  # noqa: S311
            crowd.append(_Client(opened.queue, f"fickle-{number}", own_luck))
        until = asyncio.get_running_loop().time() + seconds
        async with asyncio.TaskGroup() as group:
            for client in crowd:
                group.create_task(client.lease_and_cancel(until))
            group.create_task(asyncio.to_thread(_enqueue, server.url, seconds))
    return crowd


def _enqueue(url: str, seconds: float) -> None:
    ends_at = time.monotonic() + seconds
    with leaseq.connect(url) as client:
        while time.monotonic() < ends_at:
            stored(client, naps(5))
            time.sleep(0.05)


def _outcome(client: leaseq.Client, crowd: list[_Client]) -> Outcome:
    held = {task_id for each in crowd for task_id in each.held}

    def leased() -> set[str]:
        return {task.id for task in all_tasks(client) if task.status == "leased"}

    give_up_at = time.monotonic() + _ARE_SETTLED_WITHIN
    while leased() != held and time.monotonic() < give_up_at:
        time.sleep(0.2)
    tasks = list(all_tasks(client))
    return Outcome(
        tasks=len(tasks),
        cancelled=sum(each.cancelled for each in crowd),
        held=len(held),
        held_twice=twice(task_id for each in crowd for task_id in each.held),
        statuses=Counter(task.status.value for task in tasks),
        leased_by_nobody=leased() - held,
        held_but_not_leased=held - leased(),
        counted=Counter(task.attempts for task in tasks),
    )
