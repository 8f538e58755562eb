"""Whether the worker's event loop turns, and which handler keeps it from turning."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from .moment import Moment, Stopwatch

_logger = logging.getLogger(__name__)

_BLOCKED_AFTER: Final = 1.0
"""Seconds without a turn that are worth a warning."""

_TURNS_KEPT: Final = 3
"""
A reply takes a few callbacks to get through the loop, and the loop may note a turn or two
between them.
"""

NameHandler = Callable[[asyncio.Task[Any]], Mapping[str, object]]
"""Which task of the queue an asyncio task handles, as ids for a log; empty: none."""


class Pulse:
    """Notes when the event loop turned. `look` is called from another thread."""

    def __init__(
        self, *, worker_id: str, interval: float, stopwatch: Stopwatch, name_handler: NameHandler
    ) -> None:
        self._worker_id = worker_id
        self._interval = interval
        self._stopwatch = stopwatch
        self._name_handler = name_handler
        self._turns = deque([stopwatch()], maxlen=_TURNS_KEPT)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread = 0
        self._looked = self._turns[-1]
        self._warned_of: Moment | None = None

    async def beat(self) -> None:
        """Note each turn, until cancelled."""
        self._loop_thread = threading.get_ident()
        self._loop = asyncio.get_running_loop()
        while True:
            self._turns.append(self._stopwatch())
            await asyncio.sleep(self._interval)

    @property
    def floor(self) -> Moment:
        """A moment before which nothing arrived that the loop has not yet looked at."""
        return self._turns[0]

    def look(self, now: Moment) -> None:
        """Warn once if the loop has not turned for a while."""
        looked, self._looked = self._looked, now
        turned = self._turns[-1]
        if self._loop is None or turned is self._warned_of or now.since(turned) < _BLOCKED_AFTER:
            return
        if now.since(looked) >= _BLOCKED_AFTER:
            return  # this thread did not run either: it was the process that stood still
        self._warned_of = turned
        running = asyncio.current_task(self._loop)
        _logger.warning(
            "event loop blocked",
            extra={
                "worker_id": self._worker_id,
                "seconds": round(now.since(turned), 1),
                "where": self._where(),
                **(self._name_handler(running) if running is not None else {}),
            },
        )

    def _where(self) -> str:
        # What runs may have moved on since the task was looked up; for a hint that will do.
        frame = sys._current_frames().get(self._loop_thread)  # noqa: SLF001  documented; no other way
        return f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
