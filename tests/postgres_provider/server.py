"""What a running server is to the tests, and how they wait for it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    import subprocess

# A zone that nobody would assume by mistake: psycopg returns instants in the session's zone.
SERVER_SETTINGS = {"max_connections": "200", "timezone": "Asia/Kathmandu"}


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """A server that answers at `url` as a role that may do everything."""

    url: str
    origin: str


class PostgresUnavailableError(Exception):
    """This way of finding a server is closed here; the next one may not be."""


def wait_until_ready(
    url: str,
    *,
    seconds: float,
    pause: float = 0.0,
    process: subprocess.Popen[bytes] | None = None,
) -> None:
    """
    Return when two connections in a row, `pause` seconds apart, got an answer to a query.

    Twice, because the Docker image starts its server, stops it and starts it again.

    Raises:
        PostgresUnavailableError: no answer within `seconds`, or `process` has ended.
    """
    deadline = time.monotonic() + seconds
    while True:
        try:
            _select_1(url)
            time.sleep(pause)
            _select_1(url)
        except psycopg.OperationalError as error:
            ended = process is not None and process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise PostgresUnavailableError(f"no answer to a query: {error}") from error
            time.sleep(0.05)
        else:
            return


def _select_1(url: str) -> None:
    with psycopg.connect(url, connect_timeout=5) as connection:
        connection.execute("SELECT 1")
