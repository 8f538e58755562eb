"""The Lease calls that wait in one server."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import attrs

T = TypeVar("T")


@attrs.frozen
class WaitName:
    """What a worker calls one of its Lease calls."""

    worker_id: str
    call_id: str


class Waits:
    """
    Lets Lease calls wait, and ends one by its name or all at once.

    A wait is ended by cancelling the lease beneath it, which gives back what it may have
    claimed (see `TaskQueue.lease`): so nothing here needs to know how a lease waits.
    """

    def __init__(self) -> None:
        self._waiting: dict[object, asyncio.Timeout] = {}
        self._ended = False

    async def finish(
        self, lease: Coroutine[Any, Any, list[T]], *, name: WaitName | None = None
    ) -> list[T]:
        """Return what `lease` returns, or nothing once its wait is ended."""
        if self._ended:
            lease.close()
            return []
        wait = asyncio.timeout(None)
        # Of two calls under one name, against the rules, only one can be ended by it.
        key = object() if name is None or name in self._waiting else name
        try:
            async with wait:
                self._waiting[key] = wait
                return await lease
        except TimeoutError:
            if not wait.expired():
                raise
            return []
        finally:
            self._waiting.pop(key, None)

    def end(self, name: WaitName) -> None:
        """Let the call of this name, if one waits, return nothing."""
        # Once ended it is no longer among them: what expires cannot be told to again.
        if (wait := self._waiting.pop(name, None)) is not None:
            wait.reschedule(asyncio.get_running_loop().time())

    def end_all(self) -> None:
        """Let every call that waits, and every later one, return nothing."""
        self._ended = True
        now = asyncio.get_running_loop().time()
        while self._waiting:
            _, wait = self._waiting.popitem()
            wait.reschedule(now)
