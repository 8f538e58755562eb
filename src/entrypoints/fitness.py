"""Whether a server should be sent requests: its loops, its storage, and whether it stops."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Final

from ..adapters.http.health import Check
from ..domain.errors import TaskQueueError
from .loops import LoopReport

_log: Final = logging.getLogger(__name__)

_FRESH: Final = timedelta(seconds=1)
_PATIENCE: Final = timedelta(milliseconds=500)
"""Less than the second after which those who ask for readiness mostly give up."""

_STALE: Final = timedelta(seconds=10)


class Fitness:
    """
    What is known about how fit a server is.

    Args:
        loops: how each loop fares.
        query: asks the storage something small. However many want to know, one asks.
    """

    def __init__(
        self,
        *,
        loops: Callable[[], Sequence[LoopReport]],
        query: Callable[[], Awaitable[object]],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loops = loops
        self._query = query
        self._monotonic = monotonic
        self._last_good = monotonic()
        self._fault: str | None = None
        self._asking: asyncio.Task[None] | None = None
        self._stopping = False

    def stopping(self) -> None:
        """Be unfit from now on."""
        self._stopping = True

    async def checks(self) -> Sequence[Check]:
        """Return every check, having asked the storage unless it answered just now."""
        if self._fault is not None or self._age() > _FRESH:
            await self._ask()
        return [
            Check(name="stopping", fault="the server is stopping" if self._stopping else None),
            self._storage(),
            *(
                Check(name=loop.name, fault=loop.fault, age=loop.age, limit=loop.stale_after)
                for loop in self._loops()
            ),
        ]

    async def close(self) -> None:
        """Ask nothing more."""
        if self._asking is not None:
            self._asking.cancel()
            with suppress(asyncio.CancelledError):
                await self._asking

    def _storage(self) -> Check:
        age = self._age()
        fault = self._fault
        # One slow answer is no reason to send everybody elsewhere.
        if fault is None and age > _STALE:
            fault = f"the storage last answered {age.total_seconds():.0f} s ago"
        return Check(name="storage", fault=fault, age=age, limit=_STALE)

    def _age(self) -> timedelta:
        return timedelta(seconds=self._monotonic() - self._last_good)

    async def _ask(self) -> None:
        if self._asking is None or self._asking.done():
            self._asking = asyncio.create_task(self._answer(), name="leaseq.readiness")
        await asyncio.wait([self._asking], timeout=_PATIENCE.total_seconds())

    async def _answer(self) -> None:
        try:
            await self._query()
        except TaskQueueError as error:
            self._fault = str(error)
        except Exception as error:  # noqa: BLE001  whatever it is, it is not fit
            _log.exception("the storage could not be asked")
            self._fault = f"the storage failed: {type(error).__name__}"
        else:
            self._fault = None
            self._last_good = self._monotonic()
