"""
A server on a memory storage, for tests; and, run as a program, for trying things by hand.

    python tests/memory_server.py [PORT]
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from datetime import timedelta

import attrs

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.adapters.ids import RandomIds, RandomJitter
from leaseq.adapters.memory import MemoryStorage
from leaseq.adapters.wake_up import LocalWakeUp
from leaseq.domain.admin import AdminService
from leaseq.domain.maintenance import MaintenanceService
from leaseq.domain.ports import Storage
from leaseq.domain.service import QueueService

REAPED_EVERY = timedelta(seconds=0.2)
GRACE = timedelta(seconds=1)


@attrs.frozen(kw_only=True)
class MemoryServices:
    queue: BatchingQueue
    admin: AdminService
    maintenance: MaintenanceService


@attrs.frozen(kw_only=True)
class MemoryServer(MemoryServices):
    grpc: GrpcServer
    target: str


def memory_services(storage: Storage) -> MemoryServices:
    tasks, clock, jitter, wake_up = storage.tasks, storage.clock, RandomJitter(), LocalWakeUp()
    service = QueueService(
        tasks=tasks, clock=clock, ids=RandomIds(), jitter=jitter, wake_up=wake_up
    )
    return MemoryServices(
        queue=BatchingQueue(service, clock=clock, wake_up=wake_up, jitter=jitter),
        admin=AdminService(tasks=tasks, queues=storage.queues, clock=clock, wake_up=wake_up),
        maintenance=MaintenanceService(tasks=tasks, clock=clock, jitter=jitter, wake_up=wake_up),
    )


@contextlib.asynccontextmanager
async def memory_server(
    storage: Storage | None = None, *, port: int = 0, reflection: bool = False
) -> AsyncIterator[MemoryServer]:
    services = memory_services(storage or MemoryStorage())
    queue, admin = services.queue, services.admin
    grpc = GrpcServer(queue=queue, admin=admin, undo=queue, reflection=reflection)
    bound = await grpc.start(f"127.0.0.1:{port}")
    try:
        yield MemoryServer(
            queue=queue,
            admin=admin,
            maintenance=services.maintenance,
            grpc=grpc,
            target=f"127.0.0.1:{bound}",
        )
    finally:
        await grpc.drain(GRACE)
        await queue.close()


async def main(port: int) -> None:
    async with memory_server(port=port, reflection=True) as server:
        print(server.target, flush=True)  # noqa: T201  a program says where it listens
        while True:
            await server.maintenance.reap()
            await asyncio.sleep(REAPED_EVERY.total_seconds())


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
