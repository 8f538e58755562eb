"""
From a URL to the driving ports, for code that awaits and for code that blocks.

A storage URL gives the process a `Host`; `grpc://` gives it a channel to a server. The
caller cannot tell which it holds.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import attrs

from ..domain.ports import TaskAdmin, TaskQueue
from .urls import GrpcUrl, parse_url

T = TypeVar("T")


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
        case GrpcUrl(address=address):
            raise NotImplementedError(address)
        case storage:
            # A client of a server should not pay for the imports of a storage.
            from .host import hosted_async  # noqa: PLC0415
            from .hosted import HostedTaskAdmin, HostedTaskQueue, awaiting  # noqa: PLC0415

            async with hosted_async(storage) as host:
                yield Connection(HostedTaskQueue(host, awaiting), HostedTaskAdmin(host, awaiting))


@contextmanager
def open_blocking(url: str) -> Iterator[Connection]:
    """
    Open `url` for use from any thread; the coroutines never suspend (see `run_blocking`).

    Raises:
        InvalidArgumentError: `url` is none.
        StorageError: as for `open_async`.
    """
    match parse_url(url):
        case GrpcUrl(address=address):
            raise NotImplementedError(address)
        case storage:
            from .host import hosted  # noqa: PLC0415  as above
            from .hosted import HostedTaskAdmin, HostedTaskQueue, blocking  # noqa: PLC0415

            with hosted(storage) as host:
                yield Connection(HostedTaskQueue(host, blocking), HostedTaskAdmin(host, blocking))


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
