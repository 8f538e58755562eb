"""Wake-ups within one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import timedelta

from ..domain.ids import QueueName


class LocalSignal:
    """A `Signal` that `LocalWakeUp` sets."""

    def __init__(self) -> None:
        self._told = asyncio.Event()

    def tell(self) -> None:
        """Let the next `wait`, or the one that waits now, return."""
        self._told.set()

    async def wait(self, *, timeout: timedelta) -> None:  # noqa: ASYNC109  the port's signature
        """Return when told since the last return, or else after `timeout`."""
        try:
            async with asyncio.timeout(timeout.total_seconds()):
                await self._told.wait()
        except TimeoutError:
            return
        self._told.clear()


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
