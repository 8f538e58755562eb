"""From a URL to what a worker needs from outside."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta

from ...adapters.ids import RandomJitter
from ...domain.ports import TaskQueue
from ..connection import open_async, open_blocking
from ..urls import parse_url
from .outside import Outside


def outside_of(url: str) -> Outside:
    """
    Return the ways to the queue that `url` names; nothing is opened yet.

    Raises:
        InvalidArgumentError: `url` is none.
    """
    parse_url(url)

    @asynccontextmanager
    async def opened() -> AsyncIterator[TaskQueue]:
        async with open_async(url) as connection:
            yield connection.queue

    @contextmanager
    def opened_blocking(deadline: timedelta) -> Iterator[TaskQueue]:
        with open_blocking(url, deadline=deadline) as connection:
            yield connection.queue

    return Outside(open_async=opened, open_blocking=opened_blocking, jitter=RandomJitter())
