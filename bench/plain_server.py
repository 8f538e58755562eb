"""
A leaseq server on PostgreSQL that can be told not to merge enqueues.

For the measurement only: `leaseq server` always merges. Without the loops of a server, which
nothing here needs.

    plain_server.py DSN SCHEMA merged|unmerged
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.adapters.ids import RandomIds, RandomJitter
from leaseq.adapters.postgres.storage import open_postgres
from leaseq.adapters.wake_up import LocalWakeUp
from leaseq.domain.admin import AdminService
from leaseq.domain.errors import TaskQueueError
from leaseq.domain.requests import NewTask
from leaseq.domain.service import QueueService
from leaseq.domain.views import Enqueued


class UnmergedQueue(BatchingQueue):
    """A `BatchingQueue` that carries out each enqueue by itself."""

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store tasks; see `TaskQueue.enqueue`."""
        return await self._service.enqueue(tasks)


async def serve(dsn: str, schema: str, kind: type[BatchingQueue]) -> None:
    """Serve until the process is ended."""
    jitter, wake_up = RandomJitter(), LocalWakeUp()
    async with open_postgres(dsn, schema=schema) as storage:
        service = QueueService(
            tasks=storage.tasks,
            clock=storage.clock,
            ids=RandomIds(),
            jitter=jitter,
            wake_up=wake_up,
        )
        queue = kind(service, clock=storage.clock, wake_up=wake_up, jitter=jitter)
        admin = AdminService(
            tasks=storage.tasks, queues=storage.queues, clock=storage.clock, wake_up=wake_up
        )
        server = GrpcServer(queue=queue, undo=queue, admin=admin)
        port = await server.start("127.0.0.1:0")
        print(f"serves gRPC on 127.0.0.1:{port}, until ended", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    _, dsn_, schema_, merged = sys.argv
    asyncio.run(serve(dsn_, schema_, BatchingQueue if merged == "merged" else UnmergedQueue))
