"""
Loops that must not stop: each pass is bounded, and one that fails is tried again.

Nothing here knows what a loop does. How old the last good pass of each is tells
whether the process is fit to serve.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Final

import attrs

from ..domain.errors import TaskQueueError
from ..domain.ports import Jitter, Maintenance, Storage

_log: Final = logging.getLogger(__name__)

_FIRST_BACKOFF: Final = timedelta(seconds=1)
_MAX_DOUBLINGS: Final = 16

Sleeper = Callable[[timedelta], Awaitable[None]]


@attrs.frozen(kw_only=True)
class Loop:
    """Something to do again and again."""

    name: str
    run_pass: Callable[[], Awaitable[object]]
    interval: timedelta
    """Between a good pass and the next; up to a fifth of it is taken off by chance."""

    first_after: timedelta = timedelta(0)
    pass_limit: timedelta = timedelta(seconds=30)
    """A pass that takes longer is cancelled, and has failed."""

    longest_backoff: timedelta = timedelta(seconds=5)
    stale_after: timedelta | None = None
    """Without a good pass for so long the process is unfit; None: that does not matter."""


def upkeep(
    maintenance: Maintenance, storage: Storage, *, reaper_interval: timedelta
) -> tuple[Loop, ...]:
    """Return the loops that somebody who holds a storage has to run."""
    return (
        Loop(
            name="reaper",
            run_pass=maintenance.reap,
            interval=reaper_interval,
            stale_after=max(timedelta(seconds=30), 6 * reaper_interval),
        ),
        Loop(
            name="tender",
            run_pass=storage.tend,
            interval=timedelta(seconds=10),
            stale_after=timedelta(seconds=60),
        ),
        # The first pass waits, so that processes that come and go do not all prune.
        Loop(
            name="pruner",
            run_pass=maintenance.prune,
            interval=timedelta(hours=1),
            first_after=timedelta(minutes=2),
            pass_limit=timedelta(minutes=5),
            longest_backoff=timedelta(minutes=5),
        ),
    )


@attrs.frozen(kw_only=True)
class LoopReport:
    """How one loop fares."""

    name: str
    age: timedelta
    """How long ago it had a good pass, or was started if it had none."""

    stale_after: timedelta | None
    fault: str | None
    """Why the process should not serve for its sake, or None."""


class Supervisor:
    """Runs loops, and knows how each fares."""

    def __init__(
        self,
        loops: Sequence[Loop],
        *,
        jitter: Jitter,
        sleep: Sleeper | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loops = tuple(loops)
        self._jitter = jitter
        self._sleep = sleep or _sleep
        self._monotonic = monotonic
        self._last_good: dict[str, float] = {}
        self._running: dict[str, asyncio.Task[None]] = {}

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the loops until the block is left; a pass in progress is then cancelled."""
        self._last_good = dict.fromkeys((loop.name for loop in self._loops), self._monotonic())
        self._running = {
            loop.name: asyncio.create_task(self._run(loop), name=f"leaseq.{loop.name}")
            for loop in self._loops
        }
        for name, task in self._running.items():
            task.add_done_callback(partial(_report_end, name))
        try:
            yield
        finally:
            for task in self._running.values():
                task.cancel()
            await asyncio.gather(*self._running.values(), return_exceptions=True)

    def ages(self) -> Mapping[str, timedelta]:
        """Return how long ago each loop had a good pass, or was started if it had none."""
        now = self._monotonic()
        return {name: timedelta(seconds=now - at) for name, at in self._last_good.items()}

    def reports(self) -> list[LoopReport]:
        """Return how each loop fares."""
        ages = self.ages()
        return [self._report(loop, ages.get(loop.name, timedelta(0))) for loop in self._loops]

    def unfit(self) -> str | None:
        """Return why the process should not serve, or None."""
        return next((report.fault for report in self.reports() if report.fault), None)

    def _report(self, loop: Loop, age: timedelta) -> LoopReport:
        task = self._running.get(loop.name)
        fault = None
        if task is None or task.done():
            fault = f"the {loop.name} does not run"
        elif loop.stale_after is not None and age > loop.stale_after:
            seconds = age.total_seconds()
            fault = f"the {loop.name} had its last good pass {seconds:.0f} s ago"
        return LoopReport(name=loop.name, age=age, stale_after=loop.stale_after, fault=fault)

    async def _run(self, loop: Loop) -> None:
        await self._sleep(loop.first_after * (1 + self._jitter.draw()))
        failures = 0
        while True:
            failures = 0 if await self._good_pass(loop) else failures + 1
            await self._sleep(self._wait(loop, failures))

    async def _good_pass(self, loop: Loop) -> bool:
        try:
            async with asyncio.timeout(loop.pass_limit.total_seconds()):
                await loop.run_pass()
        except asyncio.CancelledError:
            if _is_being_cancelled():
                raise
            # Somebody below lost a future of its own; that is no reason to stop.
            _log.warning("pass was cancelled from below", extra={"loop": loop.name})
        except TaskQueueError as error:
            _log.warning("pass failed", extra={"loop": loop.name, "error": str(error)})
        except TimeoutError:
            limit = loop.pass_limit.total_seconds()
            _log.warning("pass took too long", extra={"loop": loop.name, "seconds": limit})
        except Exception:  # noqa: BLE001  whatever went wrong, the next pass may work
            _log.exception("pass failed unexpectedly", extra={"loop": loop.name})
        else:
            self._last_good[loop.name] = self._monotonic()
            return True
        return False

    def _wait(self, loop: Loop, failures: int) -> timedelta:
        if not failures:
            return loop.interval * (1 - self._jitter.draw() / 5)
        doubled = _FIRST_BACKOFF * 2.0 ** min(failures - 1, _MAX_DOUBLINGS)
        return min(doubled, loop.longest_backoff) * (1 - self._jitter.draw() / 2)


async def _sleep(span: timedelta) -> None:
    await asyncio.sleep(span.total_seconds())


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _report_end(name: str, ended: asyncio.Task[None]) -> None:
    if not ended.cancelled():
        _log.error("loop died", extra={"loop": name}, exc_info=ended.exception())
