"""Clients that are made before a fork, and used on both sides of it."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

import leaseq
from leaseq_process import SOON, clean_environment, leaseq_server

# Each child says what became of it by its exit code; one that hangs is ended by its alarm.
PROGRAM = """
import os, signal, sys, threading
import leaseq

url, used, children, busy = sys.argv[1], sys.argv[2] == "used", int(sys.argv[3]), int(sys.argv[4])
client = leaseq.connect(url)
if used:
    client.enqueue("parent")
over = threading.Event()

def keep_busy():
    while not over.is_set():
        client.enqueue("busy")

threads = [threading.Thread(target=keep_busy) for _ in range(busy)]
for thread in threads:
    thread.start()

def child():
    signal.alarm(30)
    for _ in range(3):
        client.enqueue("child")
    with leaseq.connect(url) as another:
        another.enqueue("child")
    client.close()

pids = []
for _ in range(children):
    if not (pid := os.fork()):
        child()
        sys.exit(0)  # by way of all that the interpreter does at its end
    pids.append(pid)
    client.enqueue("parent")
ended = [os.waitpid(pid, 0)[1] for pid in pids]
client.enqueue("parent")
over.set()
for thread in threads:
    thread.join()
client.close()
print(ended)
"""

REFUSED = """
import os, sys
import leaseq

url, error = sys.argv[1], getattr(leaseq, sys.argv[2])
client = leaseq.connect(url)
client.enqueue("parent")
if not (pid := os.fork()):
    try:
        client.enqueue("child")
    except error as refused:
        print(refused, flush=True)
        with leaseq.connect(url) as own:
            own.enqueue("child")
        os._exit(0)
    os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
client.enqueue("parent")
"""

ASYNC = """
import asyncio, os, sys
import leaseq

async def main():
    async with leaseq.connect_async(sys.argv[1]) as client:
        await client.enqueue("parent")
        if not (pid := os.fork()):
            try:
                with leaseq.connect(sys.argv[1]) as own:
                    own.enqueue("child")
            except leaseq.NotSentError as refused:
                print(refused, flush=True)
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        await client.enqueue("parent")

asyncio.run(main())
"""


def run(program: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * SOON,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(params=["grpc", "sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    match request.param:
        case "grpc":
            with leaseq_server("--storage", "memory://", cwd=tmp_path) as server:
                yield server.url
        case "sqlite":
            yield f"sqlite:///{tmp_path}/tasks.db"
        case _:
            dsn = request.getfixturevalue("postgres_url")
            schema = quote(request.getfixturevalue("postgres_schema"))
            yield f"{dsn}{'&' if '?' in dsn else '?'}schema={schema}"


def stored(url: str, type_: str) -> int:
    with leaseq.connect(url) as client:
        return len(client.list_tasks(type=type_, size=1000).tasks)


@pytest.mark.timeout(180)
@pytest.mark.parametrize("before", ["used", "unused"])
def test_a_client_made_before_a_fork_enqueues_in_parent_and_children(url: str, before: str) -> None:
    ended = run(PROGRAM, url, before, "4", "0")

    assert ended == str([0] * 4)
    assert stored(url, "child") == 4 * 4
    assert stored(url, "parent") == 4 + 1 + (before == "used")


@pytest.mark.timeout(180)
def test_forks_in_the_middle_of_calls_of_other_threads_hang_and_break_nothing(url: str) -> None:
    ended = run(PROGRAM, url, "used", "10", "4")

    assert ended == str([0] * 10)
    assert stored(url, "child") == 10 * 4


def test_an_sqlite_file_is_whole_after_children_have_ended(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"

    run(PROGRAM, f"sqlite:///{path}", "used", "4", "2")

    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_the_memory_of_a_parent_is_refused_to_its_child_which_may_have_its_own() -> None:
    told = run(REFUSED, "memory://parent", "StorageError")

    assert told == (
        "memory://parent is in the memory of the process that this one was forked from;"
        " what processes share needs a file, a database or a server"
    )


@pytest.mark.timeout(120)
def test_a_child_of_a_process_with_an_open_async_client_is_refused_and_does_not_crash(
    tmp_path: Path,
) -> None:
    with leaseq_server("--storage", "memory://", cwd=tmp_path) as server:
        told = run(ASYNC, server.url)

    assert "it was forked in the middle of its parent's calls" in told
    assert told.endswith("; nothing was stored")
