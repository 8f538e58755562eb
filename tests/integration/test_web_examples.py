"""Runs examples/web as its README prints it, and then under load."""

from __future__ import annotations

import http.client
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import attrs
import pytest

import leaseq
from leaseq_process import SOON, clean_environment

EXAMPLES = Path(__file__).parents[2] / "examples" / "web"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"<!-- ([^>]+) -->\n```console\n(.*?)```", re.DOTALL)
PORTS = {"server": "127.0.0.1:7480", "blocking": "127.0.0.1:8001", "async": "127.0.0.1:8002"}
CALLERS, CALLS = 24, 20


@attrs.define
class Reader:
    """Somebody who does what the page says, in a folder with the examples."""

    folder: Path
    addresses: dict[str, str]
    stack: ExitStack
    printed: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = attrs.field(factory=dict)

    def follow(self) -> None:
        for order, text in BLOCK.findall(PAGE):
            what, _, name = order.partition(": ")
            match what:
                case "background":
                    self.start(name, self.here(text))
                case "run":
                    self.printed += self.run(self.here(text))
                case _:
                    assert what == "install"

    def here(self, text: str) -> str:
        """Put the addresses of this test in the place of the page's."""
        for name, printed in PORTS.items():
            text = text.replace(printed, self.addresses[name])
        return text.replace("--port 8002", f"--port {self.addresses['async'].partition(':')[2]}")

    def run(self, text: str) -> str:
        return subprocess.run(
            ["sh", "-euc", text],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            check=True,
            timeout=SOON,
        ).stdout

    def start(self, name: str, line: str) -> None:
        process = subprocess.Popen(
            ["sh", "-euc", f"exec {line}"],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that workers end with their master, whatever happens
        )
        self.processes[name] = process
        self.stack.callback(self.kill, process)
        give_up_at = time.monotonic() + 2 * SOON
        while not answers(self.addresses[name]):
            assert process.poll() is None
            assert time.monotonic() < give_up_at
            time.sleep(0.05)

    def kill(self, process: subprocess.Popen[bytes]) -> None:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            return
        finally:
            process.wait(SOON)

    def stop(self, name: str) -> int:
        self.processes[name].terminate()
        return self.processes[name].wait(SOON)

    def environment(self) -> dict[str, str]:
        server = self.addresses["server"]
        return clean_environment(
            HOME=str(self.folder),
            PATH=f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            LEASEQ_GRPC=server,
            LEASEQ_SERVER=server,
            QUEUE_URL=f"grpc://{server}",
        )


def answers(address: str) -> bool:
    host, _, port = address.partition(":")
    with socket.socket() as asking:
        return asking.connect_ex((host, int(port))) == 0


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    for source in EXAMPLES.glob("*.py"):
        shutil.copy(source, tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("leaseq", "gunicorn", "uvicorn"):
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {name} "$@"\n')
        program.chmod(0o755)
    with ExitStack() as free:
        sockets = [free.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in PORTS]
        ports = [each.getsockname()[1] for each in sockets]
    addresses = {name: f"127.0.0.1:{port}" for name, port in zip(PORTS, ports, strict=True)}
    with ExitStack() as stack:
        yield Reader(tmp_path, addresses, stack)


def post(address: str) -> str:
    connection = http.client.HTTPConnection(address, timeout=SOON)
    try:
        connection.request("POST", "/load")
        response = connection.getresponse()
        text = response.read().decode()
        assert response.status == 202, text
        return text.strip()
    finally:
        connection.close()


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page calls curl")
@pytest.mark.timeout(240)
def test_web_applications_enqueue_as_printed_and_under_load(reader: Reader) -> None:
    reader.follow()
    with ThreadPoolExecutor(CALLERS) as pool:
        for name in ("blocking", "async"):
            ids = list(pool.map(post, [reader.addresses[name]] * CALLERS * CALLS))
            assert len(set(ids)) == CALLERS * CALLS

    with leaseq.connect(f"grpc://{reader.addresses['server']}") as client:
        [queue] = client.list_queues()
    assert queue.depths[leaseq.Status.QUEUED].count == 2 * CALLERS * CALLS + 2
    assert reader.printed.count("greet") == 2
    # uvicorn ends, once all is done, by the signal that it was sent.
    ended = [reader.stop(name) for name in ("blocking", "async", "server")]
    assert ended == [0, -signal.SIGTERM, 0]
