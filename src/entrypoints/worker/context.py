"""What a handler is told about the task it works on, and whether it should stop."""

from __future__ import annotations

import asyncio
import threading
from enum import StrEnum
from typing import Final

from ...domain.views import LeasedTask


class StopReason(StrEnum):
    """Why a handler should stop."""

    LEASE_LOST = "lease_lost"
    """The task is no longer this worker's: whatever the handler returns is not reported."""

    CANCEL_REQUESTED = "cancel_requested"
    """Somebody called the task off."""

    TIMEOUT = "timeout"
    """The handler's `timeout` is over: whatever it returns, the attempt has failed."""

    SHUTDOWN = "shutdown"
    """The worker stops and its grace period is over: the task will be given back."""


_STRONGER: Final = {
    StopReason.LEASE_LOST: frozenset[StopReason](),
    StopReason.TIMEOUT: frozenset({StopReason.LEASE_LOST}),
    StopReason.CANCEL_REQUESTED: frozenset({StopReason.LEASE_LOST, StopReason.TIMEOUT}),
    StopReason.SHUTDOWN: frozenset({StopReason.LEASE_LOST, StopReason.TIMEOUT}),
}
"""Which reasons are not forgotten over another."""


class TaskContext:
    """
    One attempt at one task, as its handler sees it.

    May be read from any thread.
    """

    def __init__(self, leased: LeasedTask) -> None:
        self._leased = leased
        self._reason: StopReason | None = None
        # Two threads may tell at once, and a lost lease must not be forgotten.
        self._telling = threading.Lock()

    def __repr__(self) -> str:
        """Return its ids; never its payload."""
        return f"<TaskContext {self.type} {self.task_id}, attempt {self.attempt}>"

    @property
    def task_id(self) -> str:
        """The id of the task, the same in all its attempts."""
        return self._leased.task.id

    @property
    def queue(self) -> str:
        """The queue the task came from."""
        return self._leased.task.queue

    @property
    def type(self) -> str:
        """The task's type, which chose the handler."""
        return self._leased.task.type

    @property
    def attempt(self) -> int:
        """1 for the first attempt."""
        return self._leased.attempt

    @property
    def max_attempts(self) -> int:
        """After how many failed attempts the task is given up."""
        return self._leased.task.max_attempts

    @property
    def lease_number(self) -> int:
        """
        A number that rises with every lease of this task and is never reset.

        Store it beside what the handler writes and refuse writes with a smaller one: so a
        worker that lost its lease cannot overwrite what its successor did.
        """
        return self._leased.lease_number

    @property
    def idempotency_key(self) -> str | None:
        """The key under which the task was enqueued, or None."""
        return self._leased.task.idempotency_key

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop. Long `def` handlers look at it now and then."""
        return self._reason is not None

    @property
    def cancel_reason(self) -> StopReason | None:
        """Why the handler should stop, or None."""
        return self._reason

    def raise_if_cancelled(self) -> None:
        """
        Leave the handler if it should stop.

        Raises:
            asyncio.CancelledError: it should. As a BaseException it passes through
                `except Exception`.
        """
        if self._reason is not None:
            raise asyncio.CancelledError(self._reason.value)

    def tell(self, reason: StopReason) -> bool:
        """Say that the handler should stop; return whether that was news. For the worker."""
        with self._telling:
            if self._reason in {reason, *_STRONGER[reason]}:
                return False
            self._reason = reason
            return True
