"""The order in which the tests look for a PostgreSQL."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from .container import postgres_in_docker
from .server import PostgresServer, PostgresUnavailableError, wait_until_ready
from .wheel import postgres_from_installation, postgres_from_wheel

if TYPE_CHECKING:
    from collections.abc import Iterator

URL_VARIABLE = "LEASEQ_TEST_POSTGRES_URL"
BINARIES_VARIABLE = "LEASEQ_TEST_POSTGRES_BIN"


@contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """
    Find or start a server, and stop it at the end if it was started here.

    Raises:
        PostgresUnavailableError: there is none, with the reason for each way. A server named by
            `LEASEQ_TEST_POSTGRES_URL` that does not answer is an error: nothing else is tried.
            Likewise one to be started from `LEASEQ_TEST_POSTGRES_BIN`, a folder or "wheel".
    """
    if url := os.environ.get(URL_VARIABLE):
        wait_until_ready(url, seconds=10)
        yield PostgresServer(url=url, origin=URL_VARIABLE)
        return
    if binaries := os.environ.get(BINARIES_VARIABLE):
        with _from_binaries(binaries) as server:
            yield server
        return
    refusals = []
    with ExitStack() as stack:
        for source in (postgres_in_docker, postgres_from_wheel):
            try:
                server = stack.enter_context(source())
            except PostgresUnavailableError as refusal:
                refusals.append(str(refusal))
            else:
                yield PostgresServer(url=server.url, origin="; ".join([server.origin, *refusals]))
                return
    raise PostgresUnavailableError(f"{URL_VARIABLE} is not set; {'; '.join(refusals)}")


def _from_binaries(named: str) -> AbstractContextManager[PostgresServer]:
    if named == "wheel":
        return postgres_from_wheel()
    return postgres_from_installation(Path(named).resolve())
