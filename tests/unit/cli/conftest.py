from __future__ import annotations

from collections.abc import Iterator

import pytest

from cli_runs import SERVER, Run, run_command
from leaseq.entrypoints.connection import Connection, open_blocking


@pytest.fixture
def connection() -> Iterator[Connection]:
    with open_blocking(SERVER) as connection:
        yield connection


@pytest.fixture
def run(connection: Connection) -> Run:  # noqa: ARG001  it keeps the tasks between commands
    return run_command
