"""Runs docs/quickstart.md from top to bottom, as it is printed."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest

import leaseq
from leaseq_process import SOON, clean_environment
from node_programs import install_packages

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- ([^>]+) -->\n```(\w+)\n(.*?)```", re.DOTALL)
ADDRESS = "127.0.0.1:7480"
DATABASE = "postgresql://leaseq:secret@db.example.org/leaseq"

# Programs found by the names that the page gives them, and run as this environment's.
PROGRAMS = {
    "python": f'#!/bin/sh\nexec "{sys.executable}" "$@"\n',
    "leaseq": f'#!/bin/sh\nexec "{sys.executable}" -m leaseq "$@"\n',
}


@attrs.define
class Reader:
    """Somebody who does what the page says, in a folder with the page's files."""

    folder: Path
    address: str
    database: str
    stack: ExitStack
    printed: str = ""
    servers: list[subprocess.Popen[bytes]] = attrs.field(factory=list)

    def follow(self, order: str, text: str) -> None:
        text = text.replace(ADDRESS, self.address).replace(DATABASE, f"'{self.database}'")
        what, _, name = order.partition(": ")
        match what:
            case "file":
                (self.folder / name).write_text(text, encoding="utf-8")
            case "run" | "node":
                self.run(text)
            case "run, once letter-1 has failed":
                self.wait_for("letter-1", "failed")
                self.run(text)
            case "npm":
                install_packages(self.folder, text)
            case "background":
                self.start(name, text)
            case _:
                # An environment is what this test runs in; scripts/check-wheel.sh makes one anew.
                assert what == "install"

    def run(self, text: str) -> None:
        ended = subprocess.run(
            ["sh", "-euc", text],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=SOON,
        )
        assert ended.returncode == 0, text + ended.stderr
        self.printed += ended.stdout

    def start(self, name: str, text: str) -> None:
        if "server" in name:
            for server in self.servers:
                server.send_signal(signal.SIGTERM)
                assert server.wait(SOON) == 0
            self.servers.clear()
        [line] = text.splitlines()
        process = subprocess.Popen(
            ["sh", "-euc", f"exec {line}"],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.stack.callback(process.wait, SOON)
        self.stack.callback(process.kill)
        if "server" in name:
            self.servers.append(process)
            until(self.is_served)

    def environment(self) -> dict[str, str]:
        path = f"{self.folder / 'bin'}:{clean_environment()['PATH']}"
        return clean_environment(PATH=path, LEASEQ_GRPC=self.address, LEASEQ_SERVER=self.address)

    def is_served(self) -> bool:
        host, _, port = self.address.partition(":")
        with socket.socket() as asking:
            return asking.connect_ex((host, int(port))) == 0

    def wait_for(self, key: str, status: str) -> None:
        with leaseq.connect(f"grpc://{self.address}") as client:

            def reached() -> bool:
                page = client.list_tasks(queue="mail", idempotency_key=key, statuses=[status])
                return len(page.tasks) == 1

            until(reached)


def until(done: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + SOON
    while not done():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


@pytest.fixture
def reader(tmp_path: Path, postgres_url: str, postgres_schema: str) -> Iterator[Reader]:
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    (tmp_path / "bin").mkdir()
    for name, script in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(script)
        program.chmod(0o755)
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    database = f"{postgres_url}{'&' if '?' in postgres_url else '?'}schema={quote(postgres_schema)}"
    with ExitStack() as stack:
        yield Reader(tmp_path, address, database, stack)


def blocks(*, javascript: bool) -> list[tuple[str, str]]:
    """Return the page's blocks in order, each with the order that stands above it."""
    return [
        (order, text)
        for order, _, text in BLOCK.findall(PAGE)
        if javascript or not (order in {"npm", "node"} or order.endswith(".js"))
    ]


def test_no_block_of_the_page_is_passed_over() -> None:
    assert len(blocks(javascript=True)) == PAGE.count("\n```") // 2


@pytest.mark.timeout(180)
def test_the_page_does_as_it_says(reader: Reader) -> None:
    for order, text in blocks(javascript=False):
        reader.follow(order, text)

    assert reader.printed.count("is new") == 1
    assert reader.printed.count("was there already") == 1
    assert "would requeue 1 task\nrequeued 1 task\n" in reader.printed
    assert "deleted 1 task\n" in reader.printed
    reader.wait_for("greet-barbara", "succeeded")


@pytest.mark.timeout(180)
def test_the_producer_in_javascript_does_as_it_says(reader: Reader) -> None:
    for order, text in blocks(javascript=True):
        reader.follow(order, text)
        if order == "node":
            break

    assert "TASK_STATUS_QUEUED is new" in reader.printed
    reader.wait_for("greet-brendan", "succeeded")
