"""One run of a worker, from its first lease to its last word."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import attrs

from ...domain.ports import TaskQueue
from ...domain.requests import Settlement
from .carrying import Carrier
from .context import StopReason
from .executors import Executors
from .handlers import Handler
from .heart import Heart
from .heart_process import HeartProcess
from .held import HeldTasks
from .leasing import Leasing, Slots
from .moment import Moment
from .outside import Outside
from .plan import Plan
from .pulse import Pulse
from .settling import Settler
from .stopping import Stop, StopSwitch, first_of

_logger = logging.getLogger(__name__)

STOPS_WITHIN: Final = 1.0
"""Seconds that handlers get to end after they were told to, when the worker stops."""

LAST_WORD_WITHIN: Final = 3.0
"""Seconds that the queue gets to take the last reports."""


@attrs.frozen(kw_only=True)
class Ending:
    """What a run leaves behind."""

    running: tuple[Settlement, ...]
    """What to report of handlers that would not end, once the process ends under them."""

    unreported: int
    """How many outcomes the queue did not take in time; their leases run out."""


class Run:
    """One run of a worker on the event loop on which it is made."""

    def __init__(
        self,
        *,
        plan: Plan,
        worker_id: str,
        handlers: Mapping[str, Handler],
        outside: Outside,
        queue: TaskQueue,
        blocking: TaskQueue,
        switch: StopSwitch,
    ) -> None:
        self._plan = plan
        self._worker_id = worker_id
        self._switch = switch
        self._crash: BaseException | None = None
        self._slots = Slots(plan.concurrency)
        self._executors = Executors(
            handlers,
            size=plan.concurrency,
            stopwatch=outside.stopwatch,
        )
        self._settler = self._made_settler(outside, queue)
        self._held = HeldTasks(worker_id=worker_id, on_lost=self._settler.give_up)
        self._pulse = Pulse(
            worker_id=worker_id,
            interval=plan.beats.tick,
            stopwatch=outside.stopwatch,
            name_handler=self._held.name_handler,
        )
        self._heart = self._made_heart(outside, blocking)
        self._carrier = self._made_carrier(outside, handlers)
        self._leasing = self._made_leasing(outside, handlers, queue)

    def _made_heart(self, outside: Outside, blocking: TaskQueue) -> Heart | HeartProcess:
        if outside.shared_url is not None:
            return HeartProcess(
                outside.shared_url,
                worker_id=self._worker_id,
                plan=self._plan.beats,
                tell=self._held.tell,
                watch=self._watch,
                stopwatch=outside.stopwatch,
            )
        return Heart(
            blocking,
            worker_id=self._worker_id,
            plan=self._plan.beats,
            tell=self._held.tell,
            watch=self._watch,
            stopwatch=outside.stopwatch,
            jitter=outside.jitter,
        )

    def _made_settler(self, outside: Outside, queue: TaskQueue) -> Settler:
        return Settler(
            queue,
            worker_id=self._worker_id,
            deadline=self._plan.settle_within,
            jitter=outside.jitter,
            pause=outside.pause,
        )

    def _made_carrier(self, outside: Outside, handlers: Mapping[str, Handler]) -> Carrier:
        return Carrier(
            worker_id=self._worker_id,
            handlers=handlers,
            held=self._held,
            heart=self._heart,
            settler=self._settler,
            slots=self._slots,
            executors=self._executors,
            floor=lambda: self._pulse.floor,
            stopwatch=outside.stopwatch,
        )

    def _made_leasing(
        self, outside: Outside, handlers: Mapping[str, Handler], queue: TaskQueue
    ) -> Leasing:
        return Leasing(
            queue=queue,
            wanted=self._plan.lease_request(worker_id=self._worker_id, types=tuple(handlers)),
            slots=self._slots,
            silent=lambda: self._heart.silent,
            receive=self._carrier.receive,
            stopwatch=outside.stopwatch,
            jitter=outside.jitter,
            pause=outside.pause,
        )

    def _watch(self, now: Moment) -> None:
        self._pulse.look(now)
        self._held.tell_overdue(now)

    @property
    def last_words(self) -> tuple[Settlement, ...]:
        """What to report of all that is held at this moment; from any thread."""
        return tuple(held.last_word for held in self._held)

    async def main(self, *, patient: bool) -> Ending:
        """
        Work until the switch is thrown, and return what is left behind.

        Args:
            patient: wait for handlers that do not end when told to, until LEAVE is asked.
        """
        with self._heart:
            async with self._background():
                await self._start()
                self._log(
                    "worker started",
                    queues=self._plan.queues,
                    concurrency=self._plan.concurrency,
                )
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
            self._executors.close()

    def _notice_crash(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and task.exception() is not None:
            self._crash = task.exception()
            self._switch.ask(Stop.LEAVE)

    async def _start(self) -> None:
        """Lease nothing before leases can be renewed, and handlers run."""
        await self._executors.start()
        await first_of(self._heart.ready(), self._switch.wait(Stop.DRAIN))

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
        running = tuple(held.last_word for held in self._held if held.running)
        return Ending(running=running, unreported=len(self._held) - len(running))
