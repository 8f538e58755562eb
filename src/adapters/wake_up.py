"""Wake-ups within one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

from ..domain.ids import QueueName


class LocalSignal:
    """A `Signal` that `LocalWakeUp` tells."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self._news = False

    def tell(self) -> None:
        """Let the next `wait`, or the one that is under way, return True."""
        self._news = True
        self._woken.set()

    def nudge(self) -> None:
        """Let the next `wait`, or the one that is under way, return."""
        self._woken.set()

    async def wait(self, *, timeout: timedelta) -> bool:  # noqa: ASYNC109  the port's signature
        """Return True once told since the last return, False after `timeout` or a nudge."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout.total_seconds()):
                await self._woken.wait()
        news = self._news
        self._news = False
        self._woken.clear()
        return news


class LocalWakeUp:
    """A `WakeUp` for everybody on this event loop. Not for use from other threads."""

    def __init__(self) -> None:
        self._listeners: dict[QueueName, set[LocalSignal]] = {}

    def notify(self, queues: Collection[QueueName]) -> None:
        """Tell the listeners of these queues."""
        for queue in queues:
            for signal in self._listeners.get(queue, ()):
                signal.tell()

    @contextmanager
    def listen(self, queues: Collection[QueueName]) -> Iterator[LocalSignal]:
        """Listen until the block is left."""
        signal = LocalSignal()
        for queue in queues:
            self._listeners.setdefault(queue, set()).add(signal)
        try:
            yield signal
        finally:
            for queue in queues:
                listeners = self._listeners[queue]
                listeners.discard(signal)
                if not listeners:
                    del self._listeners[queue]
