from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg
import pytest

from leaseq.adapters.postgres import open_postgres
from leaseq.domain import lifecycle
from leaseq.domain.ids import LeaseToken
from leaseq.domain.storing import Change, Replaced
from leaseq.testing import NOON, SEND, a_demand, a_lease, a_task, some_grants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PGBOUNCER = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed")
async def test_tasks_live_behind_pgbouncer_on_a_single_session(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    tasks = [a_task(key=f"k-{number}") for number in range(20)]
    with pgbouncer(postgres_url, tmp_path) as url:
        async with (
            open_postgres(url, schema=postgres_schema, pooler="transaction") as one,
            open_postgres(url, schema=postgres_schema, pooler="transaction") as other,
        ):
            await one.tasks.add(tasks)
            first = await one.tasks.claim(a_demand(grants=some_grants(10)), now=NOON)
            rest = await other.tasks.claim(
                a_demand(types=[SEND], grants=[a_lease("late") for _ in range(20)]), now=NOON
            )
            ended = [
                Change(
                    old=task,
                    new=lifecycle.complete(task, token=LeaseToken("late"), result=None, now=NOON),
                )
                for task in rest.tasks
            ]
            outcomes = await one.tasks.replace(ended)
            await other.tend()

    assert (len(first.tasks), len(rest.tasks)) == (10, 10)
    assert outcomes == [Replaced.DONE] * 10


@contextmanager
def pgbouncer(url: str, folder: Path) -> Iterator[str]:
    """Run PgBouncer in transaction mode, with one connection to the server of `url`."""
    parts = urlsplit(url)
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (folder / "users.txt").write_text(f'"{parts.username}" "{parts.password}"\n')
    (folder / "pgbouncer.ini").write_text(
        f"""
        [databases]
        * = host={parts.hostname} port={parts.port}
        [pgbouncer]
        listen_addr = 127.0.0.1
        listen_port = {port}
        unix_socket_dir =
        auth_type = plain
        auth_file = {folder}/users.txt
        pool_mode = transaction
        default_pool_size = 1
        """
    )
    command = [str(PGBOUNCER), "-q", str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:
        for path in (folder, *folder.parents[:2]):
            path.chmod(0o755)
        command[1:1] = ["-u", "nobody"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            pooled = parts._replace(
                netloc=f"{parts.username}:{parts.password}@127.0.0.1:{port}"
            ).geturl()
            _wait_for(pooled)
            yield pooled
        finally:
            process.terminate()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with suppress(psycopg.OperationalError), psycopg.connect(url):
            return
        time.sleep(0.05)
    raise AssertionError("pgbouncer does not answer")
