"""
Heartbeats from their own threads.

The worker's event loop may be blocked by a handler for as long as it likes: leases are
renewed, and loss is noticed, from here. One thing stops these threads too: a single call
into C that keeps Python's global lock. So the heart of a worker whose queue others can
reach beats in another process (`heart_process`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Self

from ...domain.ports import Jitter, TaskQueue
from ...domain.requests import HeartbeatRequest, LeaseRef
from ..connection import run_blocking
from .ledger import BeatPlan, Hold, Ledger, Sign, Verdict
from .log import describe
from .moment import Moment, Stopwatch

_logger = logging.getLogger(__name__)

_MOST_IN_FLIGHT = 4
"""Beats under way at once. One that hangs for longer than a lease is not counted any more."""

Spawn = Callable[[Callable[[], None]], object]


def in_a_thread(work: Callable[[], None]) -> None:
    """Do `work` in a thread of its own that never keeps the process from ending."""
    threading.Thread(target=work, name="leaseq-heartbeat", daemon=True).start()


class Heart:
    """
    Renews the leases a worker holds, and says which are lost or called off.

    `tell` and `watch` are called in the threads of the heart; `watch` at every tick of the
    plan. While entered, it beats.
    """

    def __init__(
        self,
        queue: TaskQueue,
        *,
        worker_id: str,
        plan: BeatPlan,
        tell: Callable[[Verdict], None],
        watch: Callable[[Moment], None],
        stopwatch: Stopwatch,
        jitter: Jitter,
        spawn: Spawn = in_a_thread,
    ) -> None:
        self._queue = queue
        self._worker_id = worker_id
        self._plan = plan
        self._tell = tell
        self._watch = watch
        self._stopwatch = stopwatch
        self._jitter = jitter
        self._spawn = spawn
        self._ledger = Ledger(plan)
        self._in_flight: set[Moment] = set()
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
        self._thread.join()

    def _live(self) -> None:
        while not self._stopped.wait(self._plan.tick):
            try:
                self.turn()
            except Exception:
                _logger.exception("heart stumbled", extra={"worker_id": self._worker_id})

    # --- what the worker says, in any thread

    @property
    def silent(self) -> bool:
        """Whether a lease ran out unheard and nobody has answered since: lease nothing more."""
        return self._ledger.silent

    async def ready(self) -> None:
        """Return once leases can be renewed."""

    def hold(self, holds: Iterable[Hold]) -> None:
        """Renew leases from now on."""
        with self._lock:
            for hold in holds:
                self._ledger.hold(hold)

    def reporting(self, ref: LeaseRef, since: Moment) -> None:
        """Note that a handler has ended and its outcome is being reported."""
        with self._lock:
            self._ledger.reporting(ref, now=since)

    def drop(self, ref: LeaseRef) -> None:
        """Renew a lease no more."""
        with self._lock:
            self._ledger.drop(ref)

    # --- the beats

    def turn(self, sign: Sign = Sign.ALIVE) -> None:
        """
        Do what is due at this moment.

        Args:
            sign: what is seen of the worker at this moment.
        """
        now = self._stopwatch()
        with self._lock:
            was_silent = self._ledger.silent
            lost = self._ledger.lapsed(now, sign)
            asked = self._ledger.due(now, sign) if self._may_send(now) else None
            if asked is not None:
                self._in_flight.add(now)
            fell_silent = self._ledger.silent and not was_silent
        if fell_silent:
            _logger.error(
                "no heartbeat landed for a whole lease; leasing stops until one does",
                extra={"worker_id": self._worker_id},
            )
        self._pass_on(lost)
        if asked is not None:
            self._spawn(lambda: self._beat(asked, now))
        self._watch(now)

    def _may_send(self, now: Moment) -> bool:
        fresh = sum(now.since(sent) < self._plan.lease for sent in self._in_flight)
        return fresh < _MOST_IN_FLIGHT

    def _beat(self, refs: Sequence[LeaseRef], sent: Moment) -> None:
        request = HeartbeatRequest(
            worker_id=self._worker_id,
            leases=tuple(refs),
            lease_duration=timedelta(seconds=self._plan.lease),
        )
        try:
            answers = run_blocking(self._queue.heartbeat(request))
        except Exception as error:  # noqa: BLE001  whatever the transport raises, the next beat goes out
            self._not_landed(refs, error, sent)
            return
        with self._lock:
            self._in_flight.discard(sent)
            was_silent = self._ledger.silent
            now = self._stopwatch()
            jitter = self._jitter.draw()
            verdicts = self._ledger.landed(refs, answers, sent=sent, now=now, jitter=jitter)
        if was_silent:
            _logger.warning("heartbeats land again", extra={"worker_id": self._worker_id})
        self._pass_on(verdicts)

    def _not_landed(self, refs: Sequence[LeaseRef], error: Exception, sent: Moment) -> None:
        with self._lock:
            self._in_flight.discard(sent)
            self._ledger.failed(refs, now=self._stopwatch(), jitter=self._jitter.draw())
        if self._stopped.is_set():
            return
        _logger.warning(
            "heartbeat failed",
            extra={"worker_id": self._worker_id, "leases": len(refs), "error": describe(error)},
        )

    def _pass_on(self, verdicts: Sequence[Verdict]) -> None:
        for verdict in verdicts:
            if self._stopped.is_set():
                return
            self._tell(verdict)
