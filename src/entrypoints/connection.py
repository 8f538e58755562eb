"""
From a URL to the driving ports, for code that awaits and for code that blocks.

A storage URL gives the process a `Host`; `grpc://` gives it a channel to a server. The
caller cannot tell which it holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

import attrs

from ..domain.ports import TaskAdmin, TaskQueue
from .urls import GrpcUrl, parse_url

T = TypeVar("T")

_FROM_A_SERVER: Final = timedelta(seconds=10)
_FROM_A_STORAGE: Final = timedelta(seconds=30)
"""Longer than what storages allow themselves, so that they can say what became of a call."""


@attrs.frozen
class Connection:
    """What producers, workers and operators can do where a URL points."""

    queue: TaskQueue
    admin: TaskAdmin


@asynccontextmanager
async def open_async(url: str) -> AsyncIterator[Connection]:
    """
    Open `url` for use on the running event loop, and on no other.

    Raises:
        InvalidArgumentError: `url` is none.
        StorageError: the storage cannot be opened. (A server that cannot be reached is
            noticed at the first call.)
    """
    match parse_url(url):
        # Neither should pay for the imports of the other.
        case GrpcUrl(address=address):
            from ..adapters.grpc.client import open_aio_client  # noqa: PLC0415

            async with open_aio_client(str(address), timeout=_FROM_A_SERVER) as client:
                yield Connection(client.queue, client.admin)
        case storage:
            from .host import hosted_async  # noqa: PLC0415
            from .hosted import Awaiting, HostedTaskAdmin, HostedTaskQueue  # noqa: PLC0415

            async with hosted_async(storage) as host:
                wait = Awaiting(deadline=_FROM_A_STORAGE)
                yield Connection(HostedTaskQueue(host, wait), HostedTaskAdmin(host, wait))


@contextmanager
def open_blocking(url: str, *, deadline: timedelta | None = None) -> Iterator[Connection]:
    """
    Open `url` for use from any thread; the coroutines never suspend (see `run_blocking`).

    Args:
        deadline: how long a call may take (a Lease its wait more) before it raises
            StorageUnavailableError; None: 10 s with a server, 30 s with a storage.

    Raises:
        InvalidArgumentError: `url` is none.
        StorageError: as for `open_async`.
    """
    match parse_url(url):
        case GrpcUrl(address=address):
            from ..adapters.grpc.client import open_blocking_client  # noqa: PLC0415  as above

            within = _FROM_A_SERVER if deadline is None else deadline
            with open_blocking_client(str(address), timeout=within) as client:
                yield Connection(client.queue, client.admin)
        case storage:
            from .host import hosted  # noqa: PLC0415
            from .hosted import Blocking, HostedTaskAdmin, HostedTaskQueue  # noqa: PLC0415

            with hosted(storage) as host:
                wait = Blocking(deadline=_FROM_A_STORAGE if deadline is None else deadline)
                yield Connection(HostedTaskQueue(host, wait), HostedTaskAdmin(host, wait))


def run_blocking(coroutine: Coroutine[Any, Any, T]) -> T:
    """
    Run a coroutine that never suspends, and return its result.

    Raises:
        RuntimeError: it did suspend.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine of a blocking connection was suspended")
