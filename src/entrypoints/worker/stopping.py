"""How a worker is told to stop: by signals, from any thread, and on its event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from types import FrameType
from typing import Final


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


_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def caught(on_signal: Callable[[int], None]) -> Iterator[None]:
    """
    Call `on_signal` with each SIGTERM and SIGINT while the block runs.

    Installed explicitly, since process 1 of a container ignores a SIGTERM that nobody
    handles. What was installed before is restored. Outside the main thread, where Python
    takes no signals, nothing is caught.

    Args:
        on_signal: called between any two instructions of the main thread, even while it
            runs a handler that blocks the event loop; so it may only do what can be done
            there, such as to put into a `queue.SimpleQueue`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        on_signal(number)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: installed by something that is not Python, and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


async def first_of(*awaitables: Awaitable[object], within: float | None = None) -> None:
    """Wait until one of these is done, or for `within` seconds; the others are cancelled."""
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
