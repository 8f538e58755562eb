"""A real PgBouncer in transaction mode, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")

# But for the names and the port, what `docs/operating.md` shows.
_SETTINGS = """
    [databases]
    * = host={host} port={server_port}
    [pgbouncer]
    pool_mode = transaction
    default_pool_size = {pool_size}

    listen_addr = 127.0.0.1
    listen_port = {port}
    unix_socket_dir =
    auth_type = plain
    auth_file = {folder}/users.txt
"""


@pytest.fixture
def pgbouncer_url(
    postgres_url: str,
    postgres_schema: str,  # noqa: ARG001  whose last check wants our connections gone
) -> Iterator[str]:
    """URL of the tests' database behind PgBouncer, which has two connections for everybody."""
    with pgbouncer(postgres_url) as url:
        yield url


@contextmanager
def pgbouncer(url: str, *, pool_size: int = 2) -> Iterator[str]:
    """
    Run PgBouncer in front of the server of `url`, with `pool_size` connections to it.

    Skips the test where it is not installed.
    """
    if PROGRAM is None:
        pytest.skip("pgbouncer is not installed")
    parts = urlsplit(url)
    with tempfile.TemporaryDirectory(prefix="leaseq-pgbouncer-") as name:
        port = _free_port()
        with _running(_command(Path(name), url, port=port, pool_size=pool_size)):
            user = parts.netloc.rpartition("@")[0]
            pooled = parts._replace(netloc=f"{user}@127.0.0.1:{port}").geturl()
            _wait_for(pooled)
            yield pooled


def _command(folder: Path, url: str, *, port: int, pool_size: int) -> list[str]:
    parts = urlsplit(url)
    settings = _SETTINGS.format(
        host=parts.hostname,
        server_port=parts.port or 5432,
        port=port,
        folder=folder,
        pool_size=pool_size,
    )
    (folder / "users.txt").write_text(f'"{parts.username}" "{parts.password}"\n')
    (folder / "pgbouncer.ini").write_text(settings)
    command = [str(PROGRAM), "-q", str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:
        # It refuses to run as root, and whom it becomes must be able to read its settings.
        folder.chmod(0o755)
        command[1:1] = ["-u", "nobody"]
    return command


@contextmanager
def _running(command: list[str]) -> Iterator[None]:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield
        finally:
            # SIGTERM waits for clients from 1.23 on.
            process.kill()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(url):
            return
        time.sleep(0.02)
    raise AssertionError("pgbouncer does not answer")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
