"""A process killed while it writes: what it was told is there, whole, and nothing is torn."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from leaseq.storage import Selection, StorageUnavailableError, Succeeded
from leaseq_toy import open_toy

PROGRAM = """
import asyncio, sys
import attrs
from leaseq.storage import Change, Succeeded
from leaseq.testing import NOON, a_task, a_task_id
from leaseq_toy import open_toy

async def main(path, first):
    async with open_toy(path, compact_at=2000) as storage:
        for number in range(first, 10**6):
            payload = '{"a": "' + "x" * 500 + '"}'
            task = a_task(id=a_task_id(number), key=f"k-{number}", payload=payload)
            await storage.tasks.add([task])
            print("added", number, flush=True)
            done = attrs.evolve(task, state=Succeeded(at=NOON), version=2)
            await storage.tasks.replace([Change(old=task, new=done)])
            print("done", number, flush=True)
            await storage.tend()

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@contextmanager
def writing(path: Path, first: int) -> Iterator[subprocess.Popen[str]]:
    """Run a process that stores and completes tasks from this number on."""
    command = [sys.executable, "-c", PROGRAM, str(path), str(first)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_everything_acknowledged_outlives_kill_9(tmp_path: Path) -> None:
    path = tmp_path / "tasks.log"
    told: set[tuple[str, int]] = set()

    for lines in (1, 2, 3, 40, 101, 160):
        first = max((number for _, number in told), default=0) + 2
        with writing(path, first) as process:
            assert process.stdout
            heard = [process.stdout.readline() for _ in range(lines)]
            process.kill()
            heard += process.stdout.readlines()
        told |= {(word, int(number)) for word, number in map(str.split, heard)}

        async with open_toy(path) as storage:
            found = await storage.tasks.search(Selection(), limit=10**6, with_payload=True)
        kept = {int(task.id[:8], 16): task for task in found.tasks}
        assert {number for _, number in told} <= kept.keys()
        assert {number for word, number in told if word == "done"} <= {
            number for number, task in kept.items() if isinstance(task.state, Succeeded)
        }
        assert {task.payload_bytes for task in kept.values()} == {509}


async def test_another_process_is_refused_until_the_first_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "tasks.log"

    with writing(path, 1) as process:
        assert process.stdout
        assert process.stdout.readline()
        with pytest.raises(StorageUnavailableError, match="in use by another process"):
            async with open_toy(path):
                pass
        process.kill()
        process.wait(timeout=30)
        async with open_toy(path):
            pass
