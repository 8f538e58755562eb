"""Carries each task through: runs its handler, then reports until the queue has taken it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import attrs

from ...domain.requests import Complete, Fail, LeaseRef, Release, Settlement
from ...domain.views import LeasedTask
from .executors import Executors
from .handlers import Handler
from .held import Held, HeldTasks
from .leasing import Arrival, Slots
from .ledger import Hold
from .moment import Moment, Stopwatch
from .settling import Report, Settler

_logger = logging.getLogger(__name__)

_STALE_SHARE: Final = 0.5
"""A lease that may have lost this part on its way is given back instead of started."""


class Beats(Protocol):
    """Renews leases: a `Heart`, or a `HeartProcess`."""

    @property
    def silent(self) -> bool:
        """Whether nobody answers: start nothing, lease nothing."""
        ...

    def hold(self, holds: list[Hold]) -> None:
        """Renew leases from now on."""
        ...

    def reporting(self, ref: LeaseRef, since: Moment) -> None:
        """Note that a handler has ended and its outcome is being reported."""
        ...

    def drop(self, ref: LeaseRef) -> None:
        """Renew a lease no more."""
        ...


@attrs.define(kw_only=True)
class Carrier:
    """Carries tasks from their arrival to a settlement. For one event loop."""

    _worker_id: str
    _handlers: Mapping[str, Handler]
    _held: HeldTasks
    _heart: Beats
    _settler: Settler
    _slots: Slots
    _executors: Executors
    _floor: Callable[[], Moment]
    """See `Pulse.floor`."""

    _stopwatch: Stopwatch
    _closed: bool = attrs.field(default=False, init=False)

    def close(self) -> None:
        """Give back everything that still arrives."""
        self._closed = True

    def receive(self, arrival: Arrival) -> int:
        """Take in what a poll brought, and return how many of it are not given back."""
        anchor = max(self._floor(), arrival.asked, key=lambda moment: moment.steady)
        arrived = [self._held_of(leased) for leased in arrival.tasks]
        for held in arrived:
            self._held.add(held)
        # From here on, so that leases are renewed whatever takes its time below.
        self._heart.hold([_hold(held, anchor) for held in arrived])
        age = self._stopwatch().since(anchor)
        kept = 0
        for held in arrived:
            self._slots.take()
            handler = self._handler_of(held, age=age)
            held.way = asyncio.create_task(self._carry(held, handler))
            kept += handler is not None
        return kept

    def _held_of(self, leased: LeasedTask) -> Held:
        handler = self._handlers.get(leased.task.type)
        return Held.of(leased, timeout=None if handler is None else handler.timeout)

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
        return await self._executors.run(handler, held)

    async def _report(self, held: Held, settlement: Settlement) -> None:
        self._heart.reporting(held.ref, self._stopwatch())
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


def _hold(held: Held, anchor: Moment) -> Hold:
    return Hold(
        ref=held.ref,
        anchor=anchor,
        remaining=held.leased.lease_duration.total_seconds(),
        must_end=None if held.timeout is None else anchor.plus(held.timeout),
    )
