"""The connection of a client command."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from ...domain.errors import StorageUnavailableError
from ..connection import Connection, open_blocking
from ..urls import Address, GrpcUrl, parse_url
from .misuse import naming_options

_REACHED_WITHIN: Final = timedelta(seconds=5)
_ANSWERED_WITHIN: Final = timedelta(seconds=20)


@contextmanager
def connected(server: str, *, queue: str = "--queue") -> Iterator[Connection]:
    """
    Open what `--server` names, for calls through `run_blocking`.

    Args:
        queue: how the command spells the queue.

    Raises:
        MisuseError: a call was refused as nonsense.
        StorageUnavailableError: nobody listens there, or the storage cannot be reached.
    """
    match parse_url(server):
        case GrpcUrl(address=address):
            _require_reachable(address)
    with (
        open_blocking(server, deadline=_ANSWERED_WITHIN) as connection,
        naming_options(queue=queue),
    ):
        yield connection


def _require_reachable(address: Address) -> None:
    # A call waits for a server that restarts; a person who forgot to start one should not.
    try:
        seconds = _REACHED_WITHIN.total_seconds()
        socket.create_connection((address.host, address.port), seconds).close()
    except OSError as error:
        raise StorageUnavailableError(
            f"no server at {address} ({error.strerror or error}); start one: leaseq server"
        ) from None
