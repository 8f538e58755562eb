"""What a worker holds, each task from its arrival until its outcome was taken."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import attrs

from ...domain.requests import LeaseRef, Settlement
from ...domain.views import LeasedTask
from .context import StopReason, TaskContext


@attrs.define(kw_only=True, eq=False)
class Held:
    """One lease and the handler that runs under it."""

    leased: LeasedTask = attrs.field(repr=False)
    ref: LeaseRef
    context: TaskContext
    way: asyncio.Task[None] | None = None
    """Carries it through."""

    handling: asyncio.Task[Settlement] | None = None
    """Of an `async def` handler while it runs."""

    in_thread: bool = False
    """Whether a `def` handler runs."""

    @classmethod
    def of(cls, leased: LeasedTask) -> Held:
        """Return what is to be held of a task that has arrived."""
        ref = LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token)
        return cls(leased=leased, ref=ref, context=TaskContext(leased))

    @property
    def running(self) -> bool:
        """Whether a handler is at work."""
        return self.handling is not None or self.in_thread

    @property
    def lost(self) -> bool:
        """Whether the lease is no longer this worker's."""
        return self.context.cancel_reason is StopReason.LEASE_LOST

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

    def __init__(self, *, on_lost: Callable[[LeaseRef], None]) -> None:
        self._by_ref: dict[LeaseRef, Held] = {}
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()

    def __iter__(self) -> Iterator[Held]:
        """Iterate over what is held at this moment."""
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

    def tell(self, ref: LeaseRef, reason: StopReason) -> None:
        """
        Tell one handler to stop; for an `async def` one that is a cancellation.

        From any thread. Its context says so at once, even if the event loop is blocked.
        """
        held = self._by_ref.get(ref)
        if held is not None and held.context.tell(reason):
            with suppress(RuntimeError):  # the loop is closed, and the handler with it
                self._loop.call_soon_threadsafe(self._stop, held)

    def tell_all(self, reason: StopReason) -> None:
        """Tell every handler to stop."""
        for held in self:
            if held.context.tell(reason):
                self._stop(held)

    def _stop(self, held: Held) -> None:
        if held.handling is not None:
            held.handling.cancel()
        if held.lost:
            self._on_lost(held.ref)

    def name_handler(self, task: asyncio.Task[Any]) -> dict[str, object]:
        """Return what a log may say of the handler that `task` runs; from any thread."""
        return next((held.log_ids for held in self if held.handling is task), {})

    async def reported(self, *, within: float) -> None:
        """Wait until each outcome is taken, but for handlers that still run, or for `within`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                while ways := [each.way for each in self if each.way and not each.running]:
                    await asyncio.wait(ways)
