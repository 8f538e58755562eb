"""What a worker holds, each task from its arrival until its outcome was taken."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import attrs

from ...domain.requests import LeaseRef, Release, Settlement
from ...domain.views import LeasedTask
from . import outcome
from .context import StopReason, TaskContext
from .ledger import Verdict
from .moment import Moment

_logger = logging.getLogger(__name__)

TellHandler = Callable[[StopReason], None]
"""Passes on to a handler that runs why it should stop; from any thread."""


@attrs.define(kw_only=True, eq=False)
class Held:
    """One lease and the handler that runs under it."""

    leased: LeasedTask = attrs.field(repr=False)
    ref: LeaseRef
    context: TaskContext
    timeout: float | None = None
    """Seconds that its handler may take; None: no bound."""

    way: asyncio.Task[None] | None = None
    """Carries it through."""

    running: bool = False
    """Whether a handler is at work, or a place for it is being made."""

    since: Moment | None = None
    """When its handler began."""

    handling: asyncio.Task[Settlement] | None = None
    """Of an `async def` handler while it runs."""

    tell_handler: TellHandler | None = None
    """None where the context says enough, as to a thread."""

    _telling: threading.Lock = attrs.field(factory=threading.Lock, init=False, repr=False)
    """So that nobody is told the same thing twice."""

    @classmethod
    def of(cls, leased: LeasedTask, *, timeout: float | None = None) -> Held:
        """Return what is to be held of a task that has arrived."""
        ref = LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token)
        return cls(leased=leased, ref=ref, context=TaskContext(leased), timeout=timeout)

    @property
    def lost(self) -> bool:
        """Whether the lease is no longer this worker's."""
        return self.context.cancel_reason is StopReason.LEASE_LOST

    def overdue(self, now: Moment) -> bool:
        """Whether its handler has taken all the time that it may take."""
        since, timeout = self.since, self.timeout
        return since is not None and timeout is not None and now.since(since) >= timeout

    def tell(self, reason: StopReason) -> bool:
        """Tell the handler to stop, and return whether that was news. From any thread."""
        with self._telling:
            if not self.context.tell(reason):
                return False
            if self.tell_handler is not None:
                self.tell_handler(reason)
            return True

    def told_by(self, tell_handler: TellHandler) -> None:
        """Let `tell_handler` tell the handler from now on, and at once what it was told before."""
        with self._telling:
            self.tell_handler = tell_handler
            reason = self.context.cancel_reason
            if reason is not None:
                tell_handler(reason)

    @property
    def last_word(self) -> Settlement:
        """What to report of a handler that would not end, as the process ends under it."""
        if self.context.cancel_reason is StopReason.TIMEOUT and self.timeout is not None:
            return outcome.of_timeout(self.ref, self.timeout)
        return Release(ref=self.ref)

    @property
    def log_ids(self) -> dict[str, object]:
        """What a log may say of it."""
        return {
            "task_id": self.context.task_id,
            "task_type": self.context.type,
            "queue": self.context.queue,
            "attempt": self.context.attempt,
        }


class HeldTasks:
    """All that is held. For the event loop on which it is made, but for what says otherwise."""

    def __init__(self, *, worker_id: str, on_lost: Callable[[LeaseRef], None]) -> None:
        self._worker_id = worker_id
        self._by_ref: dict[LeaseRef, Held] = {}
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[Held]:
        """Iterate over what is held at this moment; from any thread."""
        return iter(list(self._by_ref.values()))

    def __len__(self) -> int:
        """Return how many tasks are held."""
        return len(self._by_ref)

    def add(self, held: Held) -> None:
        """Hold one more."""
        self._by_ref[held.ref] = held

    def remove(self, held: Held) -> None:
        """Hold it no more."""
        del self._by_ref[held.ref]

    def tell(self, verdict: Verdict) -> None:
        """
        Tell one handler to stop; for an `async def` one that is a cancellation.

        From any thread. Its context says so at once, even if the event loop is blocked.
        """
        held = self._by_ref.get(verdict.ref)
        if held is not None:
            self._tell(held, verdict.reason, verdict.why)

    def tell_all(self, reason: StopReason) -> None:
        """Tell every handler to stop."""
        for held in self:
            held.tell(reason)
            if held.lost:
                self._on_lost(held.ref)

    def tell_overdue(self, now: Moment) -> None:
        """Tell every handler whose timeout is over to stop; from any thread."""
        for held in self:
            if held.overdue(now):
                self._tell(held, StopReason.TIMEOUT, f"its timeout of {held.timeout:g} s is over")

    def _tell(self, held: Held, reason: StopReason, why: str) -> None:
        if not held.tell(reason):
            return
        _logger.warning(
            "handler told to stop",
            extra={
                "worker_id": self._worker_id,
                **held.log_ids,
                "reason": reason.value,
                "why": why,
            },
        )
        if held.lost:
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._on_lost, held.ref)

    def name_handler(self, task: asyncio.Task[Any]) -> dict[str, object]:
        """Return what a log may say of the handler that `task` runs; from any thread."""
        return next((held.log_ids for held in self if held.handling is task), {})

    async def reported(self, *, within: float) -> None:
        """Wait until each outcome is taken, but for handlers that still run, or for `within`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while ways := [each.way for each in self if each.way and not each.running]:
                    await asyncio.wait(ways)
