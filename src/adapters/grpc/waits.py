"""The Lease calls that wait in one server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Waits:
    """
    Lets Lease calls wait, and ends them all at once.

    A wait is ended by cancelling the lease beneath it, which gives back what it may have
    claimed (see `TaskQueue.lease`): so nothing here needs to know how a lease waits.
    """

    def __init__(self) -> None:
        self._waiting: set[asyncio.Timeout] = set()
        self._ended = False

    async def finish(self, lease: Coroutine[Any, Any, list[T]]) -> list[T]:
        """Return what `lease` returns, or nothing once waits are ended."""
        if self._ended:
            lease.close()
            return []
        wait = asyncio.timeout(None)
        try:
            async with wait:
                self._waiting.add(wait)
                return await lease
        except TimeoutError:
            if not wait.expired():
                raise
            return []
        finally:
            self._waiting.discard(wait)

    def end(self) -> None:
        """Let every call that waits, and every later one, return nothing."""
        self._ended = True
        now = asyncio.get_running_loop().time()
        for wait in self._waiting:
            wait.reschedule(now)
