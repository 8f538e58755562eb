from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import IO, Final

import pytest

import sqlite_child
from leaseq.adapters.sqlite import SqliteStorage, open_sqlite
from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.ids import TaskId
from leaseq.domain.storing import Added, Change, Found, Replaced, Selection
from leaseq.domain.task import Status
from leaseq.testing import (
    HOUR,
    MINUTE,
    NOON,
    a_demand,
    a_task,
    leased_until,
)
from leaseq.testing.conformance.replace import changed

SOON: Final = timedelta(milliseconds=100)


async def test_four_processes_share_the_tasks_of_one_file(path: Path) -> None:
    written = [a_task() for _ in range(2000)]
    async with open_sqlite(path) as storage:
        await storage.tasks.add(written)

    outputs = _work_together(path, 4)

    assert all(outputs)
    assert sorted(word for output in outputs for word in output.split()) == [t.id for t in written]
    async with open_sqlite(path) as storage:
        assert await _counts(storage) == {Status.SUCCEEDED: 2000}


async def test_processes_make_a_new_file_together(path: Path) -> None:
    outputs = _work_together(path, 4)

    assert outputs == [""] * 4
    async with open_sqlite(path) as storage:
        assert await storage.tasks.add([a_task()]) == [Added.STORED]


@pytest.mark.parametrize("batches", [1, 7, 40])
async def test_what_was_acknowledged_outlives_a_kill(path: Path, batches: int) -> None:
    with _child("enqueue", path) as child:
        told = [_stdout(child).readline() for _ in range(batches)]
        child.kill()
        told += _stdout(child).readlines()

    # The last line may have been cut in the middle of an id.
    ids = {TaskId(word) for line in told for word in line.split() if len(word) == 36}
    assert len(ids) >= 5 * batches
    async with open_sqlite(path) as storage:
        found = await storage.tasks.load(list(ids), with_payload=False)
        assert {task.id for task in found.tasks} == ids
        assert _is_sound(path)


async def test_a_full_disk_is_told_and_work_goes_on_once_there_is_room(path: Path) -> None:
    with _child("fill", path) as child:
        told, stored = child.communicate()[0].split()

    assert told == "StorageUnavailableError"
    async with open_sqlite(path) as storage:
        assert await _counts(storage) == {Status.QUEUED: int(stored)}
        assert _is_sound(path)


async def test_a_lock_of_another_process_is_waited_for_off_the_event_loop(path: Path) -> None:
    held = a_task(state=leased_until(NOON + MINUTE))
    beat = changed(held, leased_until(NOON + HOUR))
    async with open_sqlite(path) as storage:
        await storage.tasks.add([held])

        with _locked(path):
            heartbeat = asyncio.create_task(storage.tasks.replace([Change(old=held, new=beat)]))
            pauses = [await _pause() for _ in range(30)]
            listed = await storage.tasks.search(Selection(), limit=2, with_payload=True)
            waited = not heartbeat.done()

        assert waited
        assert max(pauses) < 5  # seconds; a blocked loop stands still for ten
        assert listed == Found(tasks=(held,))
        assert await heartbeat == [Replaced.DONE]


async def test_a_lock_that_is_held_too_long_is_told(path: Path) -> None:
    task = a_task()
    async with open_sqlite(path, lock_wait=SOON) as storage:
        with _locked(path):
            with pytest.raises(StorageUnavailableError, match="locked"):
                await storage.tasks.add([task])
            with pytest.raises(StorageUnavailableError, match="locked"):
                await storage.tasks.claim(a_demand(), now=NOON)

        assert await storage.tasks.add([task]) == [Added.STORED]
        assert [t.id for t in (await storage.tasks.claim(a_demand(), now=NOON)).tasks] == [task.id]


async def test_a_file_that_is_locked_for_too_long_is_not_opened(path: Path) -> None:
    async with open_sqlite(path):
        pass

    with _locked(path), pytest.raises(StorageUnavailableError, match=r"tasks\.db.*locked"):
        async with open_sqlite(path, lock_wait=SOON):
            pass


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


async def _pause() -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    await asyncio.sleep(0.01)
    return loop.time() - begun


async def _counts(storage: SqliteStorage) -> dict[Status, int]:
    [depths] = await storage.tasks.stats(now=NOON)
    return {status: depth.count for status, depth in depths.depths.items()}


def _is_sound(path: Path) -> bool:
    with closing(sqlite3.connect(path)) as connection:
        verdict: tuple[str] = connection.execute("PRAGMA integrity_check").fetchone()
    return verdict == ("ok",)


def _work_together(path: Path, number: int) -> list[str]:
    """Let so many children work at once, all to a good end, and return what each has done."""
    with ExitStack() as stack:
        children = [stack.enter_context(_child("work", path)) for _ in range(number)]
        assert [_stdout(child).readline() for child in children] == ["ready\n"] * number
        for child in children:
            assert child.stdin is not None
            child.stdin.close()
        outputs = [_stdout(child).read() for child in children]
        assert [child.wait() for child in children] == [0] * number
    return outputs


@contextmanager
def _child(verb: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, sqlite_child.__file__, verb, str(path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            yield child
        finally:
            child.kill()


def _stdout(child: subprocess.Popen[str]) -> IO[str]:
    assert child.stdout is not None
    return child.stdout


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let another process hold the write lock."""
    with _child("hold", path) as child:
        assert _stdout(child).readline() == "held\n"
        yield
        child.communicate()
