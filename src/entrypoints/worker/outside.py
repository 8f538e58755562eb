"""What a worker needs from outside: ways to its queue, time, luck."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from datetime import timedelta

import attrs

from ...adapters.ids import RandomJitter
from ...domain.ports import Jitter, TaskQueue
from ..connection import open_async, open_blocking
from ..urls import GrpcUrl, PostgresUrl, SqliteUrl, StorageUrl, parse_url
from .moment import Stopwatch, read_moment

Pause = Callable[[timedelta], Awaitable[None]]


async def sleep(span: timedelta) -> None:
    """Let `span` pass."""
    await asyncio.sleep(span.total_seconds())


@attrs.frozen(kw_only=True)
class Outside:
    """What a worker needs from outside."""

    open_async: Callable[[], AbstractAsyncContextManager[TaskQueue]]
    """Opens a queue for the running event loop."""

    open_blocking: Callable[[timedelta], AbstractContextManager[TaskQueue]]
    """
    Opens a queue for any thread: its coroutines never suspend, and no call takes longer
    than the span given.
    """

    jitter: Jitter
    shared_url: str | None = None
    """Where another process finds the same queue; None: only this one has it."""

    stopwatch: Stopwatch = read_moment
    pause: Pause = sleep


def outside_of(url: str) -> Outside:
    """
    Return the ways to the queue that `url` names; nothing is opened yet.

    Raises:
        InvalidArgumentError: `url` is none.
    """
    parsed = parse_url(url)

    @asynccontextmanager
    async def opened() -> AsyncIterator[TaskQueue]:
        async with open_async(url) as connection:
            yield connection.queue

    @contextmanager
    def opened_blocking(deadline: timedelta) -> Iterator[TaskQueue]:
        with open_blocking(url, deadline=deadline) as connection:
            yield connection.queue

    return Outside(
        open_async=opened,
        open_blocking=opened_blocking,
        jitter=RandomJitter(),
        shared_url=_shared(url, parsed),
    )


def _shared(url: str, parsed: StorageUrl | GrpcUrl) -> str | None:
    match parsed:
        case GrpcUrl() | PostgresUrl():
            return url
        case SqliteUrl(path=path):
            # Of the folder that is current now, whatever it will be later.
            return str(SqliteUrl(path=path.resolve()))
        case _:
            # Of a storage of somebody else it is not known whether processes can share it.
            return None
