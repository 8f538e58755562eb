"""
A worker with handlers in processes, for tests that crash, kill and stop them.

    python tests/process_program.py URL [LEASE_SECONDS [GRACE_SECONDS [CONCURRENCY]]]
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from typing import Any

from leaseq.entrypoints.logs import configure_logging
from leaseq.entrypoints.worker import TaskContext, Worker
from worker_program import say


def nap(payload: dict[str, Any], ctx: TaskContext) -> int:
    say(f"pid-{os.getpid()}", ctx)
    say("began", ctx)
    time.sleep(payload.get("seconds", 0))
    say("ended", ctx)
    return os.getpid()


def nap_once(payload: dict[str, Any], ctx: TaskContext) -> int:
    return nap(payload, ctx) if ctx.attempt == 1 else os.getpid()


def leave(_: dict[str, Any]) -> None:
    os._exit(3)


def crash(_: dict[str, Any]) -> None:
    ctypes.string_at(0)


def never_end(_: dict[str, Any], ctx: TaskContext) -> None:
    program = subprocess.Popen(["sleep", "1000"])
    say(f"pid-{program.pid}", ctx)
    say("began", ctx)
    program.wait()


def wait_until_told(_: dict[str, Any], ctx: TaskContext) -> None:
    say("began", ctx)
    while not ctx.cancelled:
        time.sleep(0.01)
    say(f"told-{ctx.cancel_reason}", ctx)
    ctx.raise_if_cancelled()


def large(payload: dict[str, Any]) -> dict[str, Any]:
    return payload


def made(url: str, lease: float = 1.0, grace: float = 25.0, concurrency: float = 4) -> Worker:
    worker = Worker(
        url, queues=["q"], lease_duration=lease, grace=grace, concurrency=int(concurrency)
    )
    for handler in (nap, nap_once, leave, crash, wait_until_told, large):
        worker.task(handler.__name__, executor="process")(handler)
    worker.task("never_end", executor="process", timeout=1.5)(never_end)

    @worker.task("nap_in_thread", timeout=0.5)
    def nap_in_thread(payload: dict[str, Any], ctx: TaskContext) -> None:
        say("began", ctx)
        time.sleep(payload["seconds"])

    return worker


if __name__ == "__main__":
    configure_logging(level="info", form="json")
    made(sys.argv[1], *map(float, sys.argv[2:])).run()
