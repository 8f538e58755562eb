"""The file: what is torn, what is damaged, what is full, and who else has it open."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from pathlib import Path
from typing import Any

import attrs
import pytest

from leaseq.storage import (
    Change,
    Queue,
    Replaced,
    StorageError,
    StorageUnavailableError,
    Task,
    UnreadableTaskError,
)
from leaseq.testing import EMAILS, HOUR, NOON, a_demand, a_lease, a_task, leased_until
from leaseq_toy import open_toy, open_url
from leaseq_toy.opening import ToyStorage


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.log"


async def load(storage: ToyStorage, *tasks: Task) -> list[Task]:
    found = await storage.tasks.load([task.id for task in tasks], with_payload=True)
    return list(found.tasks)


async def test_a_commit_that_was_torn_is_as_if_it_never_was(path: Path) -> None:
    first, second, third = (a_task(key=f"k-{number}") for number in range(3))
    async with open_toy(path) as storage:
        await storage.tasks.add([first])
        whole = path.stat().st_size
        await storage.tasks.add([second])
    written = path.read_bytes()

    for size in range(whole, len(written)):
        path.write_bytes(written[:size])
        async with open_toy(path) as storage:
            assert await load(storage, first, second) == [first]
            await storage.tasks.add([third])
        async with open_toy(path) as storage:
            assert await load(storage, first, second, third) == [first, third]


async def test_a_damaged_line_is_named_and_nothing_is_changed(path: Path) -> None:
    async with open_toy(path) as storage:
        await storage.tasks.add([a_task()])
        await storage.tasks.add([a_task()])
    lines = path.read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"put"', b'"pu', 1)
    path.write_bytes(b"".join(lines))

    with pytest.raises(StorageError, match=r"line 2 of .* is damaged"):
        async with open_toy(path):
            pass

    assert path.read_bytes() == b"".join(lines)


def rewrite(path: Path, task: Task, **fields: Any) -> None:
    """Change fields of a stored record behind the storage's back."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        for record in line.get("put", ()):
            if record["id"] == task.id:
                record.update(fields)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


async def test_a_task_that_cannot_be_read_is_told_alone_and_kept(path: Path) -> None:
    broken, sound = a_task(key="k-1"), a_task()
    async with open_toy(path) as storage:
        await storage.tasks.add([broken, sound])
    rewrite(path, broken, priority="high")

    for _ in range(2):  # the second time from a file that was compacted
        async with open_toy(path, compact_at=1) as storage:
            found = await storage.tasks.load([broken.id, sound.id], with_payload=True)
            [refused] = await storage.tasks.add([a_task(key="k-1")])
            await storage.tend()

        assert (found.tasks, found.unreadable) == ((sound,), (broken.id,))
        assert isinstance(refused, UnreadableTaskError)


async def test_what_a_task_was_before_it_was_damaged_is_not_told(path: Path) -> None:
    task = a_task(state=leased_until(NOON))
    async with open_toy(path) as storage:
        await storage.tasks.add([task])
        changed = attrs.evolve(task, version=2)
        await storage.tasks.replace([Change(old=task, new=changed)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], lines[2].replace(b'"version": 2', b'"version": "2"')]))

    async with open_toy(path) as storage:
        assert (await storage.tasks.load([task.id], with_payload=True)).unreadable == (task.id,)
        assert (await storage.tasks.expired(now=NOON, limit=1)).tasks == ()


@pytest.mark.parametrize(
    "header", [{"leaseq_toy": 2, "records": 1}, {"leaseq_toy": 1, "records": 99}]
)
async def test_a_file_of_a_newer_version_is_refused(path: Path, header: dict[str, int]) -> None:
    path.write_text(json.dumps(header) + "\n")

    with pytest.raises(StorageError, match="newer version"):
        async with open_toy(path):
            pass


@pytest.mark.parametrize("foreign", ["no log", "no log\n", "[]\n", '{"name": "x"}\n'])
async def test_a_file_of_another_program_is_refused_and_left_alone(
    path: Path, foreign: str
) -> None:
    path.write_text(foreign)

    with pytest.raises(StorageError, match="damaged"):
        async with open_toy(path):
            pass

    assert path.read_text() == foreign


async def test_an_empty_file_is_taken_for_a_new_one(path: Path) -> None:
    path.touch()
    task = a_task()
    async with open_toy(path) as storage:
        await storage.tasks.add([task])

    async with open_toy(path) as storage:
        assert await load(storage, task) == [task]


async def test_compaction_keeps_everything_and_takes_less_room(path: Path) -> None:
    task = a_task(payload='{"n": 1}')
    async with open_toy(path, compact_at=1) as storage:
        await storage.queues.replace(Queue(name=EMAILS), Queue(name=EMAILS, version=1))
        await storage.tasks.add([task])
        for turn in range(50):
            [task] = await load(storage, task)
            new = attrs.evolve(task, releases=turn, version=task.version + 1)
            assert await storage.tasks.replace([Change(old=task, new=new)]) == [Replaced.DONE]
        grown = path.stat().st_size

        await storage.tend()

        assert path.stat().st_size < grown / 10
        later = a_task()
        await storage.tasks.add([later])
    async with open_toy(path) as storage:
        assert await load(storage, new, later) == [new, later]
        assert await storage.queues.all() == [Queue(name=EMAILS, version=1)]


async def test_a_file_that_has_not_doubled_is_not_written_anew(path: Path) -> None:
    async with open_toy(path, compact_at=1) as storage:
        await storage.tasks.add([a_task() for _ in range(10)])
        await storage.tend()
        inode = path.stat().st_ino
        await storage.tasks.add([a_task()])

        await storage.tend()

        assert path.stat().st_ino == inode


@pytest.mark.parametrize("name", ["write", "fsync"])
async def test_what_the_disk_did_not_take_was_not_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    first, second, third = a_task(), a_task(key="k-1"), a_task(key="k-1")
    async with open_toy(path) as storage:
        await storage.tasks.add([first])
        with monkeypatch.context() as full:
            full.setattr(os, name, once_full(name))
            with pytest.raises(StorageUnavailableError):
                await storage.tasks.add([second])

        assert await load(storage, first, second) == [first]
        await storage.tasks.add([third])
    async with open_toy(path) as storage:
        assert await load(storage, first, second, third) == [first, third]


def once_full(name: str) -> Any:
    """Return a call that does half of its work, fails, and works from then on."""
    works = getattr(os, name)
    failed: list[bool] = []

    def call(file: int, *line: memoryview) -> Any:
        if failed:
            return works(file, *line)
        failed.append(True)
        works(file, *(part[: len(part) // 2] for part in line))
        raise OSError(errno.ENOSPC, "no space left")

    return call


async def test_a_disk_that_cannot_be_trusted_is_not_written_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = a_task(), a_task()

    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "input/output error")

    async with open_toy(path) as storage:
        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", fail)
            broken.setattr(os, "ftruncate", fail)
            with pytest.raises(StorageUnavailableError):
                await storage.tasks.add([first])

        with pytest.raises(StorageUnavailableError):
            await storage.tasks.add([second])


async def test_a_compaction_without_room_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = a_task(), a_task()
    async with open_toy(path, compact_at=1) as storage:
        await storage.tasks.add([first])
        with monkeypatch.context() as full:
            full.setattr(os, "write", once_full("write"))
            with pytest.raises(StorageError, match="cannot compact"):
                await storage.tend()

        await storage.tasks.add([second])
    async with open_toy(path) as storage:
        assert await load(storage, first, second) == [first, second]
    assert sorted(each.name for each in path.parent.iterdir()) == ["tasks.log", "tasks.log.lock"]


async def test_a_cancelled_call_is_told_alike_by_memory_and_disk(path: Path) -> None:
    task = a_task(run_after=NOON - HOUR)
    async with open_toy(path) as storage:
        await storage.tasks.add([task])
        claim = storage.tasks.claim(a_demand(grants=[a_lease()]), now=NOON)
        await cancelled_midway(claim)

        in_memory = await load(storage, task)
    async with open_toy(path) as storage:
        assert await load(storage, task) == in_memory


async def cancelled_midway(call: Any) -> None:
    task = asyncio.ensure_future(call)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_url_without_a_file_is_refused() -> None:
    for url in ("toy://tasks.log", "toy:///", "toy://"):
        with pytest.raises(StorageError, match="toy:///FILE"):
            open_url(url)


async def test_the_file_is_its_owners_alone(path: Path) -> None:
    async with open_toy(path):
        pass

    assert {each.stat().st_mode & 0o777 for each in path.parent.iterdir()} == {0o600}
