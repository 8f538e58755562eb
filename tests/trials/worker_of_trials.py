"""
A worker that writes down what its handler does, for tests that kill it.

    python worker_of_trials.py URL NOTES LEASE_SECONDS GRACE_SECONDS CONCURRENCY

A note is a line `WORD ID MONOTONIC_SECONDS`, appended by one write, so that whoever is killed
leaves whole lines. That clock is the computer's: it is the same in every process, also in one
that is told a wrong time.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from typing import Any

from leaseq.entrypoints.logs import configure_logging
from leaseq.entrypoints.worker import TaskContext, Worker


def made(url: str, notes: str, lease: float, grace: float, concurrency: float) -> Worker:
    worker = Worker(
        url, queues=["work"], lease_duration=lease, grace=grace, concurrency=int(concurrency)
    )
    descriptor = os.open(notes, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def note(word: str, ctx: TaskContext) -> None:
        os.write(descriptor, f"{word} {ctx.task_id} {time.monotonic()}\n".encode())

    @worker.task("nap")
    async def nap(payload: dict[str, Any], ctx: TaskContext) -> int:
        note("began", ctx)
        await asyncio.sleep(payload.get("seconds", 0))
        note("ended", ctx)
        return os.getpid()

    return worker


if __name__ == "__main__":
    configure_logging(level="info", form="json")
    made(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])).run()
