from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from postgres_provider.container import postgres_in_docker
from postgres_provider.server import PostgresUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TESTS = Path(__file__).parent.parent

SERVE_AND_WAIT = """
import sys, time
from postgres_provider.wheel import postgres_from_wheel

with postgres_from_wheel() as server:
    print(server.url, flush=True)
    time.sleep(600)
"""

COLLECT_ONLY = """
def test_needs_a_server(postgres_url):
    raise AssertionError
"""


def test_the_server_syncs_to_disk_and_has_room_for_many_connections(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        fsync = connection.execute("SHOW fsync").fetchone()
        connections = connection.execute("SHOW max_connections").fetchone()

    assert fsync == ("on",)
    assert connections is not None
    assert int(connections[0]) >= 100


def test_a_killed_pytest_leaves_neither_server_nor_folder(tmp_path: Path) -> None:
    with _serving(tmp_path) as (process, url):
        with psycopg.connect(url) as connection:
            row = connection.execute("SHOW data_directory").fetchone()
            assert row is not None
            folder = Path(row[0]).parent

        process.kill()
        process.wait(10)

        assert _comes_true(lambda: not folder.exists())
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=5)


def test_an_engine_that_never_answers_is_given_up_in_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _silent_engine(tmp_path / "docker.sock") as url:
        monkeypatch.setenv("DOCKER_HOST", url)
        began = time.monotonic()

        with pytest.raises(PostgresUnavailableError), postgres_in_docker():
            pass

    assert time.monotonic() - began < 10


def test_collecting_starts_no_server(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(COLLECT_ONLY)

    collected = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "postgres_provider.plugin", "--collect-only", "-q"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS), "LEASEQ_TEST_POSTGRES_URL": "not a url"},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )

    assert collected.returncode == 0, collected.stdout
    assert "1 test collected" in collected.stdout


@contextlib.contextmanager
def _serving(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE_AND_WAIT],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        try:
            assert select.select([process.stdout], [], [], 50)[0]
            yield process, process.stdout.readline().strip()
        finally:
            process.send_signal(signal.SIGKILL)


@contextlib.contextmanager
def _silent_engine(path: Path) -> Iterator[str]:
    """Accept connections and say nothing."""
    accepted: list[socket.socket] = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    accepted.append(listener.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"unix://{path}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
            for connection in accepted:
                connection.close()


def _comes_true(condition: Callable[[], bool], *, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
