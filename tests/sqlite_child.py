"""Programs that tests start beside themselves on one SQLite file: `sqlite_child.py VERB PATH`."""

from __future__ import annotations

import asyncio
import resource
import sqlite3
import sys
from contextlib import closing
from typing import Final

from leaseq.adapters.ids import RandomIds
from leaseq.adapters.sqlite import open_sqlite
from leaseq.domain import lifecycle
from leaseq.domain.errors import StorageError
from leaseq.domain.ids import TaskId
from leaseq.domain.storing import Added, Change, Demand, Replaced
from leaseq.domain.task import Leased, Task
from leaseq.testing import HOUR, NOON, a_demand, a_lease, a_task

ROOM: Final = 400_000
"""Bytes that a file may have while there is no room."""


async def enqueue(path: str) -> None:
    """Add tasks for ever and say the id of each that was acknowledged."""
    ids = RandomIds()
    async with open_sqlite(path) as storage:
        while True:
            batch = [_task(ids.task_id()) for _ in range(5)]
            await storage.tasks.add(batch)
            _say(*(task.id for task in batch))


async def work(path: str) -> None:
    """Once the standard input ends: lease and complete all there is, and say the ids of that."""
    async with open_sqlite(path) as storage:
        _say("ready")
        sys.stdin.read()
        while True:
            found = await storage.tasks.claim(_demand(), now=NOON)
            if not found.tasks:
                return
            changes = [Change(old=task, new=_completed(task)) for task in found.tasks]
            assert await storage.tasks.replace(changes) == [Replaced.DONE] * len(changes)
            _say(*(task.id for task in found.tasks))


async def fill(path: str) -> None:
    """Add tasks until there is no room, make room, and add one more."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ids, stored = RandomIds(), 0
    async with open_sqlite(path) as storage:
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, hard))
        try:
            while True:
                await storage.tasks.add([_task(ids.task_id()) for _ in range(20)])
                stored += 20
        except StorageError as error:
            _say(type(error).__name__)
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert await storage.tasks.add([_task(ids.task_id())]) == [Added.STORED]
        _say(str(stored + 1))


async def hold(path: str) -> None:
    """Hold the write lock until the standard input ends."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        _say("held")
        sys.stdin.read()
        connection.execute("ROLLBACK")


def _task(task_id: TaskId) -> Task:
    return a_task(id=task_id, payload=f'{{"text": "{"x" * 500}"}}')


def _demand() -> Demand:
    ids = RandomIds()
    grants = [a_lease(ids.lease_token(), until=NOON + HOUR) for _ in range(3)]
    return a_demand(grants=grants)


def _completed(task: Task) -> Task:
    assert isinstance(task.state, Leased)
    return lifecycle.complete(task, token=task.state.lease.token, result=None, now=NOON)


def _say(*words: str) -> None:
    sys.stdout.write(" ".join(words) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    [_, verb, file] = sys.argv
    asyncio.run({"enqueue": enqueue, "work": work, "fill": fill, "hold": hold}[verb](file))
