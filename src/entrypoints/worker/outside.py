"""What a worker needs from outside: ways to its queue, time, luck."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from datetime import timedelta

import attrs

from ...domain.ports import Jitter, TaskQueue
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
    stopwatch: Stopwatch = read_moment
    pause: Pause = sleep
