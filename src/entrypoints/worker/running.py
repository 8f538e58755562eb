"""One run of a worker, from its first lease to its last word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from ...domain.requests import LeaseRef
from .context import StopReason
from .parts import Parts
from .stopping import Stop
from .waiting import first_of

_logger = logging.getLogger(__name__)

STOPS_WITHIN: Final = 1.0
"""Seconds that handlers get to end after they were told to, when the worker stops."""

LAST_WORD_WITHIN: Final = 3.0
"""Seconds that the queue gets to take the last reports."""


@attrs.frozen(kw_only=True)
class Ending:
    """What a run leaves behind."""

    running: tuple[LeaseRef, ...]
    """Leases whose handler would not end."""

    unreported: int
    """How many outcomes the queue did not take in time; their leases run out."""


class Run:
    """One run of a worker on the event loop on which it is made."""

    def __init__(self, parts: Parts) -> None:
        self._plan = parts.plan
        self._worker_id = parts.worker_id
        self._switch = parts.switch
        self._slots = parts.slots
        self._threads = parts.threads
        self._settler = parts.settler
        self._held = parts.held
        self._pulse = parts.pulse
        self._heart = parts.heart
        self._carrier = parts.carrier
        self._leasing = parts.leasing
        self._crash: BaseException | None = None

    @property
    def held(self) -> tuple[LeaseRef, ...]:
        """The leases held at this moment; from any thread."""
        return self._heart.refs

    async def main(self, *, patient: bool) -> Ending:
        """
        Work until the switch is thrown, and return what is left behind.

        Args:
            patient: wait for handlers that do not end when told to, until LEAVE is asked.
        """
        self._log("worker started", queues=self._plan.queues, concurrency=self._plan.concurrency)
        with self._heart:
            async with self._background():
                await self._lease()
                await self._drain(patient=patient)
                ending = self._ending()
        # Nobody is left to report to: what comes of the rest is dropped.
        self._held.tell_all(StopReason.LEASE_LOST)
        if self._crash is not None:
            raise self._crash
        self._log("worker stopped", left=len(ending.running), unreported=ending.unreported)
        return ending

    def _log(self, message: str, **extra: object) -> None:
        _logger.info(message, extra={"worker_id": self._worker_id, **extra})

    @asynccontextmanager
    async def _background(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._settler.work()), asyncio.create_task(self._pulse.beat())]
        for task in tasks:
            task.add_done_callback(self._notice_crash)
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            self._threads.close()

    def _notice_crash(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._crash = task.exception()
            self._switch.ask(Stop.LEAVE)

    async def _lease(self) -> None:
        leasing = asyncio.create_task(self._leasing.work())
        leasing.add_done_callback(self._notice_crash)
        await self._switch.wait(Stop.DRAIN)
        self._log("worker stopping", held=len(self._held))
        self._carrier.close()
        self._leasing.stop()
        await asyncio.wait({leasing})

    async def _drain(self, *, patient: bool) -> None:
        done = self._slots.all_free
        grace = self._plan.grace.total_seconds()
        await first_of(done.wait(), self._switch.wait(Stop.GIVE_BACK), within=grace)
        if done.is_set():
            return
        _logger.warning(
            "worker gives back what still runs",
            extra={"worker_id": self._worker_id, "held": len(self._held)},
        )
        self._held.tell_all(StopReason.SHUTDOWN)
        await first_of(done.wait(), within=STOPS_WITHIN)
        if patient:
            await first_of(done.wait(), self._switch.wait(Stop.LEAVE))
        await self._held.reported(within=LAST_WORD_WITHIN)

    def _ending(self) -> Ending:
        running = tuple(held.ref for held in self._held if held.running)
        return Ending(running=running, unreported=len(self._held) - len(running))
