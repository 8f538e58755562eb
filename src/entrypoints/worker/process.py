"""
A worker that has the process for itself: signals, exit codes, and a sure end.

The first SIGTERM or SIGINT lets the worker drain, the second lets it give everything
back. A `def` handler that runs on cannot be stopped, and neither can one that blocks the
event loop; then the process ends by `os._exit`, without `atexit` functions, and the lease
is given back right before: whoever gets the task next finds the handler gone.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any, Final, NoReturn

import attrs

from ...domain.ports import TaskQueue
from ...domain.requests import Settlement
from ..connection import run_blocking
from .log import describe
from .running import LAST_WORD_WITHIN, STOPS_WITHIN, Ending
from .stopping import Stop, StopSwitch, caught

_logger = logging.getLogger(__name__)

IN_ORDER: Final = 0
"""Everything that was held was finished or given back, and the queue knows."""

NOT_IN_ORDER: Final = 1
"""The queue could not be told about all of it; those leases run out by themselves."""

_SLACK: Final = 2.0
"""Seconds beyond the worker's own bounds after which the event loop counts as blocked."""

_THREAD_PREFIX: Final = "leaseq-to-thread"
_FLUSH_WITHIN: Final = 1.0
_IDLE_THREADS_END_WITHIN: Final = 1.0


@attrs.define(kw_only=True)
class Process:
    """Runs one worker as what this process is for."""

    _blocking: TaskQueue
    _switch: StopSwitch
    _grace: float
    _last_words: Callable[[], Sequence[Settlement]]
    """What to report of all that is held at this moment; called from another thread."""

    _signals: SimpleQueue[int | None] = attrs.field(factory=SimpleQueue, init=False)

    def run(self, main: Callable[[], Coroutine[Any, Any, Ending]]) -> int:
        """
        Run `main`, and return the exit code; or end the process with it.

        Returns:
            `IN_ORDER` or `NOT_IN_ORDER`.
        """
        threading.Thread(target=self._attend, name="leaseq-signals", daemon=True).start()
        with caught(self._signals.put), asyncio.Runner() as runner:
            executor = ThreadPoolExecutor(thread_name_prefix=_THREAD_PREFIX)
            runner.get_loop().set_default_executor(executor)
            try:
                ending = runner.run(main())
            except Exception:
                if not _still_busy(executor):
                    raise
                _logger.exception("worker crashed")
                self._die(self._last_words(), in_order=False)
            finally:
                self._signals.put(None)
            # To close the runner would wait for threads that may never end.
            if ending.running or _still_busy(executor):
                self._die(ending.running, in_order=not ending.unreported)
        return NOT_IN_ORDER if ending.unreported else IN_ORDER

    # --- in a thread of its own, so that a blocked event loop keeps nobody waiting

    def _attend(self) -> None:
        if self._signals.get() is None:
            return
        self._switch.ask(Stop.DRAIN)
        bound = STOPS_WITHIN + LAST_WORD_WITHIN + _SLACK
        try:
            if self._signals.get(timeout=self._grace + bound) is None:
                return
            self._switch.ask(Stop.GIVE_BACK)
            while self._signals.get(timeout=bound) is not None:
                pass  # a third signal asks for nothing that is not under way
        except Empty:
            self._die(self._last_words(), in_order=True)

    def _die(self, running: Sequence[Settlement], *, in_order: bool) -> NoReturn:
        """End the process under handlers that would not end, their leases given back."""
        _logger.warning(
            "process ends while handlers run",
            extra={"task_ids": [settlement.ref.task_id for settlement in running]},
        )
        _within(_FLUSH_WITHIN, _flush)
        told = _within(LAST_WORD_WITHIN, lambda: self._report(running))
        os._exit(IN_ORDER if in_order and told else NOT_IN_ORDER)

    def _report(self, running: Sequence[Settlement]) -> None:
        if running:
            run_blocking(self._blocking.settle(running))


def _within(seconds: float, work: Callable[[], None]) -> bool:
    """Do `work` in a thread, and return whether it succeeded in time."""
    succeeded = threading.Event()

    def try_it() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001  nothing may keep the process from ending
            _logger.warning("last word failed", extra={"error": describe(error)})
        else:
            succeeded.set()

    thread = threading.Thread(target=try_it, name="leaseq-last-word", daemon=True)
    thread.start()
    thread.join(seconds)
    return succeeded.is_set()


def _flush() -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    logging.shutdown()


def _still_busy(executor: ThreadPoolExecutor) -> bool:
    """Whether a thread that a handler gave work to goes on although its handler has ended."""
    executor.shutdown(wait=False, cancel_futures=True)
    ends_at = time.monotonic() + _IDLE_THREADS_END_WITHIN
    threads = [each for each in threading.enumerate() if each.name.startswith(_THREAD_PREFIX)]
    for thread in threads:
        thread.join(max(0.0, ends_at - time.monotonic()))
    return any(thread.is_alive() for thread in threads)
