"""The loop that asks for tasks: as many as there are free slots, and not when it is no use."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Final

import attrs

from ...domain.errors import OverloadedError
from ...domain.limits import MAX_BATCH
from ...domain.ports import Jitter, TaskQueue
from ...domain.requests import LeaseRequest
from ...domain.retry import RetryPolicy
from ...domain.views import LeasedTask
from .log import describe
from .moment import Moment, Stopwatch
from .outside import Pause
from .stopping import first_of

_logger = logging.getLogger(__name__)

WAIT: Final = timedelta(seconds=20)
"""How long one poll of an empty queue lasts."""

_PATIENCE: Final = timedelta(seconds=10)
"""How much longer a poll may take before it counts as failed."""

_TOO_SOON: Final = WAIT / 2
"""An empty answer that comes earlier is one of a server that does not wait."""

_BACKOFF: Final = RetryPolicy(base=timedelta(milliseconds=50), cap=timedelta(seconds=5))
_CHECK_SILENCE_EVERY: Final = timedelta(milliseconds=250)


@attrs.frozen(kw_only=True)
class Arrival:
    """Tasks that a poll brought."""

    tasks: tuple[LeasedTask, ...]
    asked: Moment
    """When the poll began: the leases are not older."""


@attrs.define(kw_only=True)
class Leasing:
    """Asks for tasks until it is told to stop."""

    _queue: TaskQueue
    _wanted: LeaseRequest
    """What to ask for, but for the number and the wait."""

    _slots: Slots
    _silent: Callable[[], bool]
    _receive: Callable[[Arrival], int]
    """Takes in what a poll brought, and returns for how many tasks there is a handler."""

    _stopwatch: Stopwatch
    _jitter: Jitter
    _pause: Pause
    _stopping: asyncio.Event = attrs.field(factory=asyncio.Event)
    _failures: int = 0

    def stop(self) -> None:
        """Ask for nothing more. What is on its way is still received."""
        self._stopping.set()

    async def work(self) -> None:
        """Lease until stopped."""
        while not self._stopping.is_set():
            if not self._slots.free:
                await first_of(self._stopping.wait(), self._slots.some_free.wait())
            elif self._silent():
                await first_of(self._stopping.wait(), self._pause(_CHECK_SILENCE_EVERY))
            else:
                await self._poll()

    async def _poll(self) -> None:
        asked = self._stopwatch()
        request = attrs.evolve(self._wanted, max_tasks=min(self._slots.free, MAX_BATCH), wait=WAIT)
        poll = asyncio.ensure_future(self._lease(request))
        try:
            await first_of(self._stopping.wait(), _ended(poll))
        finally:
            poll.cancel()
        await _ended(poll)
        if poll.cancelled():
            return
        error = poll.exception()
        if error is not None:
            await self._back_off(error)
        elif tasks := poll.result():
            if self._receive(Arrival(tasks=tuple(tasks), asked=asked)):
                self._failures = 0
            else:
                # What was given back would come again at once.
                await self._back_off(None)
        elif self._stopwatch().since(asked) < _TOO_SOON.total_seconds():
            await self._back_off(None)
        else:
            self._failures = 0

    async def _lease(self, request: LeaseRequest) -> list[LeasedTask]:
        async with asyncio.timeout((WAIT + _PATIENCE).total_seconds()):
            return await self._queue.lease(request)

    async def _back_off(self, error: BaseException | None) -> None:
        if self._stopping.is_set():
            return
        self._failures += 1
        pause = _BACKOFF.delay(self._failures, jitter=self._jitter.draw())
        if error is not None:
            extra = {"worker_id": self._wanted.worker_id, "error": describe(error)}
            _logger.warning("nothing could be leased", extra=extra)
        if isinstance(error, OverloadedError):
            pause = max(pause, error.retry_after)
        await first_of(self._stopping.wait(), self._pause(pause))


async def _ended(task: asyncio.Future[list[LeasedTask]]) -> None:
    await asyncio.wait({task})


class Slots:
    """Counts what is free of `size` slots. For one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.some_free = asyncio.Event()
        """Set while at least one slot is free."""

        self.all_free = asyncio.Event()
        """Set while nothing is held."""

        self._update()

    def take(self) -> None:
        """Fill a slot."""
        self.free -= 1
        self._update()

    def give_back(self) -> None:
        """Free a slot."""
        self.free += 1
        self._update()

    def _update(self) -> None:
        _set(self.some_free, to=self.free > 0)
        _set(self.all_free, to=self.free == self.size)


def _set(event: asyncio.Event, *, to: bool) -> None:
    if to:
        event.set()
    else:
        event.clear()
