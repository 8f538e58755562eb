"""
A server that says how often it looked for tasks, and how many calls it is answering.

    python counted_server.py STORAGE_URL

It prints its port, then for every line it is sent a line `LOOKS IN_FLIGHT`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.grpc.server import GrpcServer
from leaseq.adapters.ids import RandomIds, RandomJitter
from leaseq.adapters.wake_up import LocalWakeUp
from leaseq.domain.admin import AdminService
from leaseq.domain.service import QueueService
from leaseq.domain.validation import LeaseTerms
from leaseq.domain.views import Taken
from leaseq.entrypoints.container import open_services
from leaseq.entrypoints.loops import Supervisor, upkeep
from leaseq.entrypoints.urls import parse_storage_url


class CountedService(QueueService):
    """The service of every server; a look is one claim in the storage."""

    looks = 0

    async def take(self, callers: Sequence[LeaseTerms]) -> Taken:
        self.looks += 1
        return await super().take(callers)


async def main(url: str) -> None:
    async with open_services(parse_storage_url(url)) as services:
        storage = services.storage
        wake_up, jitter = LocalWakeUp(), RandomJitter()
        service = CountedService(
            tasks=storage.tasks,
            clock=storage.clock,
            ids=RandomIds(),
            jitter=jitter,
            wake_up=wake_up,
        )
        queue = BatchingQueue(service, clock=storage.clock, wake_up=wake_up, jitter=jitter)
        admin = AdminService(
            tasks=storage.tasks, queues=storage.queues, clock=storage.clock, wake_up=wake_up
        )
        grpc = GrpcServer(queue=queue, admin=admin, undo=queue)
        loops = upkeep(services.maintenance, storage, reaper_interval=timedelta(seconds=5))
        async with Supervisor(loops, jitter=jitter).running():
            say(await grpc.start("127.0.0.1:0"))
            while await asyncio.to_thread(sys.stdin.readline):
                say(service.looks, grpc.in_flight)
            await grpc.drain(timedelta(seconds=1))
        await queue.close()


def say(*numbers: int) -> None:
    print(*numbers, flush=True)  # noqa: T201  what this program is for


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
