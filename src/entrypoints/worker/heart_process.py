"""
A heart in a process of its own, as the worker holds it.

Nothing that the worker's process does can starve it: neither one call into C that keeps
Python's global lock for a minute, nor an event loop that is blocked, nor a thousand busy
threads. What it does in return, and for whom, `beating` tells.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import islice
from multiprocessing.connection import Connection, Pipe
from typing import Any, Final, Self

import attrs

from ...domain.requests import LeaseRef
from .beating import Begin, End, Hearing, Word, writable
from .context import StopReason
from .ledger import BeatPlan, Hold, Verdict
from .moment import Moment, Stopwatch

_logger = logging.getLogger(__name__)

_PROGRAM: Final = (
    "import json, sys;"
    "descriptor, sys.path[:] = json.loads(sys.argv[1]);"
    f"from {__package__}.beating import main; main(descriptor)"
)
"""Not by `multiprocessing`, which would import the user's main program into it."""

_AT_ONCE: Final = 50
"""Leases of each kind in one word, so that it is short and never has to wait for room."""

_SIGN_EVERY: Final = 0.5
"""Seconds from one sign of life to the next."""

_ENDS_WITHIN: Final = 1.0
_LONGEST_PAUSE: Final = 30.0


class HeartProcess:
    """
    Like a `Heart`, but it beats elsewhere. For the event loop on which it is made.

    `tell` and `watch` are called in a thread of its own; `watch` at every tick of the plan.
    If its process dies, another one takes over.
    """

    def __init__(
        self,
        url: str,
        *,
        worker_id: str,
        plan: BeatPlan,
        tell: Callable[[Verdict], None],
        watch: Callable[[Moment], None],
        stopwatch: Stopwatch,
    ) -> None:
        self._url = url
        self._worker_id = worker_id
        self._plan = plan
        self._tell = tell
        self._watch = watch
        self._stopwatch = stopwatch
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._silent = True
        self._held: dict[LeaseRef, Hold] = {}
        self._reporting: dict[LeaseRef, Moment] = {}
        # What its process is to be told next.
        self._unsaid: list[Hold] = []
        self._untold: dict[LeaseRef, Moment] = {}
        self._dropped: list[LeaseRef] = []
        self._sent = time.monotonic()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._live, name="leaseq-heart", daemon=True)

    def __enter__(self) -> Self:
        """Begin to beat."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop beating. A beat under way is not waited for, and tells nobody anything."""
        self._stopped.set()
        with self._lock:
            self._send(End())
            if self._process is not None and not self._ready.is_set():
                self._process.kill()  # it is still starting, and holds nothing
        self._thread.join()

    # --- what the worker says, on its event loop

    @property
    def silent(self) -> bool:
        """Whether a lease ran out unheard and nobody has answered since: lease nothing more."""
        return self._silent

    async def ready(self) -> None:
        """Return once leases can be renewed."""
        await self._ready.wait()

    def hold(self, holds: Iterable[Hold]) -> None:
        """
        Renew leases from now on.

        They are handed over before this returns: the handler may never let another thread run.
        """
        with self._lock:
            holds = list(holds)
            self._held.update((hold.ref, hold) for hold in holds)
            self._unsaid += holds
            self._say()

    def reporting(self, ref: LeaseRef, since: Moment) -> None:
        """Note that a handler has ended and its outcome is being reported."""
        with self._lock:
            if ref in self._held:
                self._reporting[ref] = self._untold[ref] = since

    def drop(self, ref: LeaseRef) -> None:
        """Renew a lease no more."""
        with self._lock:
            self._forget(ref)
            self._dropped.append(ref)

    def _forget(self, ref: LeaseRef) -> bool:
        self._reporting.pop(ref, None)
        self._untold.pop(ref, None)
        return self._held.pop(ref, None) is not None

    def _say(self) -> None:
        """Tell the process what it does not know yet, as far as that does not mean to wait."""
        while self._unsaid or self._untold or self._dropped:
            word = Word(
                holds=tuple(self._unsaid[:_AT_ONCE]),
                reporting=tuple(islice(self._untold.items(), _AT_ONCE)),
                dropped=tuple(self._dropped[:_AT_ONCE]),
            )
            if not self._send(word):
                return
            del self._unsaid[:_AT_ONCE], self._dropped[:_AT_ONCE]
            for ref, _ in word.reporting:
                del self._untold[ref]

    def _send(self, message: Word | End) -> bool:
        if self._pipe is None:
            return False
        try:
            if not writable(self._pipe):
                return False
            self._pipe.send(message)
        except OSError:
            return False  # it is gone, as its listener is about to notice
        self._sent = time.monotonic()
        return True

    def _tick(self) -> None:
        # What has ended is told now at the earliest: tasks that take less cost no word of it.
        with self._lock:
            self._say()
            now = time.monotonic()
            if now - self._sent >= _SIGN_EVERY:
                self._send(Word())
            if now - self._sent >= self._plan.lease and self._process is not None:
                # It does not listen, so it does not beat. Another one may.
                self._process.kill()

    # --- in a thread of its own

    def _live(self) -> None:
        # The process inherits this: it hears neither Ctrl-C nor what a supervisor sends to all.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        failures = 0
        down = self._stopwatch()
        while True:
            try:
                self._beat_by_a_process()
            except Exception as error:  # noqa: BLE001  whatever it is, somebody must beat
                why = type(error).__name__
            else:
                why = "it ended"
            if self._stopped.is_set():
                return
            if self._ready.is_set() and not self._silent:
                failures, down = 0, self._stopwatch()
            self._silent = True
            _logger.error(
                "heartbeat process failed; another is started",
                extra={"worker_id": self._worker_id, "why": why},
            )
            self._wait(min(0.1 * 2**failures, _LONGEST_PAUSE), down)
            failures += 1

    def _wait(self, seconds: float, down: Moment) -> None:
        """Wait to try again, and let go of what nobody has renewed for a whole lease."""
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at and not self._stopped.wait(self._plan.tick):
            now = self._stopwatch()
            self._watch(now)
            if now.since(down) >= self._plan.lease:
                for ref in list(self._held):
                    why = "no process for heartbeats could be started"
                    self._heard(Verdict(ref=ref, reason=StopReason.LEASE_LOST, why=why))

    def _beat_by_a_process(self) -> None:
        """Start a process, and listen to it until it ends."""
        ours, theirs = Pipe()
        with ours:
            with theirs:
                process = _started(theirs)
            try:
                self._begin(ours, process)
                self._listen(ours)
            except EOFError:
                pass
            finally:
                with self._lock:
                    self._pipe = self._process = None
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_ENDS_WITHIN)
                process.kill()
                process.wait()

    def _begin(self, pipe: Connection, process: subprocess.Popen[bytes]) -> None:
        package, _, _ = __name__.partition(".")
        level = logging.getLogger(package).getEffectiveLevel()
        pipe.send(
            Begin(
                url=self._url,
                worker_id=self._worker_id,
                worker_pid=os.getpid(),
                plan=self._plan,
                log_level=level,
            )
        )
        with self._lock:
            if self._stopped.is_set():
                raise EOFError
            self._pipe, self._process = pipe, process
            # Whether the leases still live is for the queue to say: a beat is due at once.
            before = self._stopwatch().plus(-self._plan.period)
            self._sent = time.monotonic()
            self._dropped.clear()
            self._untold = dict(self._reporting)
            self._unsaid = [
                attrs.evolve(hold, anchor=before, remaining=self._plan.lease)
                for hold in self._held.values()
            ]
            self._say()

    def _listen(self, pipe: Connection) -> None:
        ticked = time.monotonic()
        while True:
            left = ticked + self._plan.tick - time.monotonic()
            if left > 0 and pipe.poll(left):
                self._heard(pipe.recv())
                continue
            ticked = time.monotonic()
            if not self._stopped.is_set():
                self._tick()
                self._watch(self._stopwatch())

    def _heard(self, message: Any) -> None:
        match message:
            case Hearing(silent=silent):
                self._silent = silent
                if not self._ready.is_set():
                    with suppress(RuntimeError):  # the loop is closed
                        self._loop.call_soon_threadsafe(self._ready.set)
            case Verdict():
                if self._stands(message) and not self._stopped.is_set():
                    self._tell(message)
            case logging.LogRecord() as record:
                logger = logging.getLogger(record.name)
                if logger.isEnabledFor(record.levelno):
                    logger.handle(record)

    def _stands(self, verdict: Verdict) -> bool:
        """Whether a verdict is still news, now that more is known than when it was made."""
        ref = verdict.ref
        with self._lock:
            if verdict.reason is not StopReason.LEASE_LOST:
                return ref in self._held
            since = self._reporting.get(ref)
            if verdict.refused and since is not None:
                # Perhaps it is lost because the outcome was taken: the answer to the report
                # will tell. Until then the heart holds it, knowing this time.
                again = attrs.evolve(
                    self._held[ref], anchor=self._stopwatch(), remaining=self._plan.lease
                )
                self._unsaid.append(again)
                self._untold[ref] = since
                return False
            return self._forget(ref)


def _started(pipe: Connection) -> subprocess.Popen[bytes]:
    descriptor = pipe.fileno()
    return subprocess.Popen(  # noqa: S603  this Python, with this program
        [sys.executable, "-c", _PROGRAM, json.dumps([descriptor, [*map(str, sys.path)]])],
        stdin=subprocess.DEVNULL,
        pass_fds=[descriptor],
    )
