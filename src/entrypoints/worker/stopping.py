"""Carries the word to stop into a worker's event loop."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import IntEnum


class Stop(IntEnum):
    """How urgently a worker is to stop; each includes those before it."""

    DRAIN = 1
    """Lease nothing more, finish what runs within the grace period, give back the rest."""

    GIVE_BACK = 2
    """Give back at once."""

    LEAVE = 3
    """Do not wait for handlers that would not end."""


class StopSwitch:
    """Told from any thread to stop, also before the loop runs; there is no way back."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._asked = 0
        self._events = {stop: asyncio.Event() for stop in Stop}

    def attach(self) -> None:
        """Set what was asked for so far, and from now on at once. Called on the loop."""
        self._loop = asyncio.get_running_loop()
        self._set()

    def ask(self, stop: Stop) -> None:
        """Ask to stop with this urgency or the one asked for before, whichever is greater."""
        self._asked = max(self._asked, stop)
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop is closed: it has stopped
                self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        for stop, event in self._events.items():
            if stop <= self._asked:
                event.set()

    async def wait(self, stop: Stop) -> None:
        """Wait until at least this is asked for."""
        await self._events[stop].wait()
