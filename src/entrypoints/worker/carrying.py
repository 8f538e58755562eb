"""Carries each task through: runs its handler, then reports until the queue has taken it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from ...domain.requests import Complete, Fail, Release, Settlement
from .attempt import attempt, attempt_blocking
from .handlers import Handler
from .heart import Heart
from .held import Held, HeldTasks
from .leasing import Arrival
from .moment import Moment, Stopwatch
from .settling import Report, Settler
from .slots import Slots
from .threads import HandlerThreads

_logger = logging.getLogger(__name__)

_STALE_SHARE: Final = 0.5
"""A lease that may have lost this part on its way is given back instead of started."""


@attrs.define(kw_only=True)
class Carrier:
    """Carries tasks from their arrival to a settlement. For one event loop."""

    _worker_id: str
    _handlers: Mapping[str, Handler]
    _held: HeldTasks
    _heart: Heart
    _settler: Settler
    _slots: Slots
    _threads: HandlerThreads
    _floor: Callable[[], Moment]
    """See `Pulse.floor`."""

    _stopwatch: Stopwatch
    _closed: bool = attrs.field(default=False, init=False)

    def close(self) -> None:
        """Give back everything that still arrives."""
        self._closed = True

    def receive(self, arrival: Arrival) -> int:
        """Take in what a poll brought, and return how many of it are not given back."""
        kept = 0
        anchor = max(self._floor(), arrival.asked, key=lambda moment: moment.steady)
        for leased in arrival.tasks:
            held = Held.of(leased)
            self._held.add(held)
            # From here on, so that the lease is renewed whatever takes its time below.
            remaining = leased.lease_duration.total_seconds()
            self._heart.hold(held.ref, anchor=anchor, remaining=remaining)
            self._slots.take()
            handler = self._handler_of(held, age=self._stopwatch().since(anchor))
            held.way = asyncio.create_task(self._carry(held, handler))
            kept += handler is not None
        return kept

    def _handler_of(self, held: Held, *, age: float) -> Handler | None:
        """Return who is to handle a task; None: it is given back."""
        if self._closed or self._heart.silent:
            return None
        if age >= held.leased.lease_duration.total_seconds() * _STALE_SHARE:
            self._log(logging.WARNING, "lease arrived late", held)
            return None
        handler = self._handlers.get(held.context.type)
        if handler is None:
            self._log(logging.WARNING, "no handler for this type", held)
        return handler

    async def _carry(self, held: Held, handler: Handler | None) -> None:
        try:
            settlement = await self._handle(held, handler)
            if held.lost:
                self._log(logging.WARNING, "outcome dropped", held)
            else:
                await self._report(held, settlement)
        except Exception:
            _logger.exception("task mishandled", extra=self._ids(held))
        finally:
            self._heart.drop(held.ref)
            self._held.remove(held)
            self._slots.give_back()

    async def _handle(self, held: Held, handler: Handler | None) -> Settlement:
        if handler is None or held.context.cancelled:
            return Release(ref=held.ref)
        self._log(logging.DEBUG, "task started", held)
        try:
            if handler.is_async:
                return await self._on_the_loop(held, handler)
            return await self._in_a_thread(held, handler)
        finally:
            held.handling, held.in_thread = None, False

    async def _on_the_loop(self, held: Held, handler: Handler) -> Settlement:
        held.handling = asyncio.create_task(
            attempt(handler, held),
            name=f"{held.context.type} {held.context.task_id}",
        )
        await asyncio.wait({held.handling})
        if held.handling.cancelled():
            # Before its first step; later, `attempt` would have made a settlement of it.
            return Release(ref=held.ref)
        return held.handling.result()

    async def _in_a_thread(self, held: Held, handler: Handler) -> Settlement:
        held.in_thread = True
        future = self._threads.submit(lambda: attempt_blocking(handler, held))
        return await asyncio.wrap_future(future)

    async def _report(self, held: Held, settlement: Settlement) -> None:
        self._heart.reporting(held.ref)
        report = await self._settler.report(settlement)
        if report is not Report.TAKEN:
            self._log(logging.ERROR, "outcome not reported", held, report=report.name.lower())
            return
        match settlement:
            case Complete():
                self._log(logging.INFO, "task completed", held)
            case Fail(error=error, retry=retry):
                self._log(logging.WARNING, "task failed", held, error=error.type, retry=retry)
            case Release():
                self._log(logging.INFO, "task released", held)

    def _log(self, level: int, message: str, held: Held, **extra: object) -> None:
        if _logger.isEnabledFor(level):
            _logger.log(level, message, extra={**self._ids(held), **extra})

    def _ids(self, held: Held) -> dict[str, object]:
        return {"worker_id": self._worker_id, **held.log_ids}
