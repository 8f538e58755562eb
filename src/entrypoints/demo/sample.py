"""
The worker of the demo, as a user would write one: three kinds of task.

    leaseq worker leaseq.entrypoints.demo.sample:worker
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from typing import Final

from ..settings import process_environment
from ..worker.context import TaskContext
from ..worker.worker import Worker

QUEUE: Final = "demo"
SERVER: Final = "LEASEQ_SERVER"
PARENT: Final = "_LEASEQ_DEMO_PROCESS"
"""The environment variables by which the demo tells its workers where it is."""

_environment = process_environment()
worker = Worker(
    f"grpc://{_environment.get(SERVER, '127.0.0.1:7480')}",
    queues=[QUEUE],
    concurrency=8,
    lease_duration=2,
)


@worker.task("greet")
async def greet(payload: dict[str, str]) -> str:
    """Work, and take a moment for it."""
    await asyncio.sleep(0.1)
    return f"Hello, {payload['name']}!"


@worker.task("flaky")
def flaky(payload: dict[str, str], ctx: TaskContext) -> str:
    """Work the third time."""
    time.sleep(0.05)
    if ctx.attempt < 3:  # noqa: PLR2004  the third
        raise ConnectionError(f"the server of {payload['name']} hung up")
    return f"reached {payload['name']} on attempt {ctx.attempt}"


@worker.task("hopeless")
def hopeless(payload: dict[str, str]) -> None:
    """Never work."""
    raise ValueError(f"{payload['name']} is no address")


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


if PARENT in _environment:
    # A demo that is killed leaves no workers behind.
    threading.Thread(target=_end_with, args=[int(_environment[PARENT])], daemon=True).start()
