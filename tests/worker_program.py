"""
A worker for tests that kill, stop and freeze processes.

    python tests/worker_program.py URL [LEASE_SECONDS [GRACE_SECONDS [CONCURRENCY]]]

It says on its standard output what its handlers do (`began ID`, `ended ID`) and logs as
JSON on the standard error.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from leaseq.entrypoints.logs import configure_logging
from leaseq.entrypoints.worker import TaskContext, Worker


def say(word: str, ctx: TaskContext) -> None:
    print(word, ctx.task_id, flush=True)  # noqa: T201  what this program is for


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits for its parent to notice has."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state in "ZX"


async def keep_lock(payload: dict[str, Any], ctx: TaskContext) -> None:
    say("began", ctx)
    # Unlike a CDLL it keeps Python's global lock, as a long computation in C does.
    ctypes.PyDLL(None).sleep(payload["seconds"])
    say("ended", ctx)


def divide(_: dict[str, Any], ctx: TaskContext) -> int:
    say("began", ctx)
    return ((3**6_000_000) // (7**2_000_000)).bit_length()


def made(url: str, lease: float = 1.0, grace: float = 25.0, concurrency: float = 4) -> Worker:
    worker = Worker(
        url, queues=["q"], lease_duration=lease, grace=grace, concurrency=int(concurrency)
    )

    @worker.task("nap")
    async def nap(payload: dict[str, Any], ctx: TaskContext) -> int:
        say("began", ctx)
        try:
            await asyncio.sleep(payload.get("seconds", 0))
        except asyncio.CancelledError:
            say("cancelled", ctx)
            raise
        say("ended", ctx)
        return os.getpid()

    @worker.task("nap_in_thread")
    def nap_in_thread(payload: dict[str, Any], ctx: TaskContext) -> int:
        say("began", ctx)
        time.sleep(payload.get("seconds", 0))
        say("ended", ctx)
        return os.getpid()

    @worker.task("nap_on_the_loop")
    async def nap_on_the_loop(payload: dict[str, Any], ctx: TaskContext) -> int:
        say("began", ctx)
        time.sleep(payload["seconds"])  # noqa: ASYNC251  the mistake that is tested
        say("ended", ctx)
        return os.getpid()

    @worker.task("nap_by_to_thread")
    async def nap_by_to_thread(payload: dict[str, Any], ctx: TaskContext) -> None:
        say("began", ctx)
        await asyncio.to_thread(time.sleep, payload["seconds"])

    @worker.task("nap_in_first_process")
    def nap_in_first_process(payload: dict[str, Any], ctx: TaskContext) -> str:
        note = Path(payload["note"])
        say("began", ctx)
        if not note.exists():
            note.write_text(str(os.getpid()))
            time.sleep(payload["seconds"])
        first = int(note.read_text())
        until = time.monotonic() + payload["patience"]
        while not gone(first) and time.monotonic() < until:
            time.sleep(0.001)
        return "gone" if gone(first) else "still there"

    @worker.task("die")
    def die(_: dict[str, Any], ctx: TaskContext) -> None:
        say("began", ctx)
        os.kill(os.getpid(), signal.SIGKILL)

    worker.task("keep_lock")(keep_lock)
    worker.task("divide")(divide)
    return worker


if __name__ == "__main__":
    configure_logging(level="info", form="json")
    made(sys.argv[1], *map(float, sys.argv[2:])).run()
