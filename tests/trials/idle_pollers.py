"""
Idle workers by the hundred: Lease calls that wait, and are made again when they end.

    python idle_pollers.py ADDRESS CALLS CHANNELS WAIT_SECONDS
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack
from datetime import timedelta

from leaseq.adapters.grpc.client import GrpcTaskQueue, open_aio_client
from leaseq.domain.requests import LeaseRequest


async def poll(queue: GrpcTaskQueue, number: int, wait: timedelta) -> None:
    request = LeaseRequest(worker_id=f"idle-{number}", queues=("work",), wait=wait)
    while True:
        await queue.lease(request)


async def main(address: str, calls: int, channels: int, wait: float) -> None:
    async with AsyncExitStack() as stack:
        queues = [
            (await stack.enter_async_context(open_aio_client(address))).queue
            for _ in range(channels)
        ]
        async with asyncio.TaskGroup() as polls:
            for number in range(calls):
                queue = queues[number % channels]
                polls.create_task(poll(queue, number, timedelta(seconds=wait)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])))
