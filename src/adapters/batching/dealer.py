"""
Leases dealt to those who wait: one look at the storage serves them all.

A thousand idle workers that ask for the same queues and types cost one look per tick. A
waiter that is gone when its tasks arrive gives them back, uncounted, and the word that
woke it goes to the next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

import attrs

from ...domain.ports import Clock, Jitter, Signal, Undo, WakeUp
from ...domain.validation import LeaseTerms
from ...domain.views import LeasedTask, Taken

POLL_AT_LEAST_EVERY: Final = timedelta(seconds=1)
"""A group that waits looks again after half of this to all of it, told or not."""

_SHORTEST_PAUSE: Final = timedelta(milliseconds=1)


class LeaseSource(Undo, Protocol):
    """Where leases come from."""

    async def take(self, callers: Sequence[LeaseTerms]) -> Taken:
        """Look once for callers that ask for the same; see `QueueService.take`."""
        ...

    async def next_due(self, terms: LeaseTerms) -> datetime | None:
        """Return when the next task for such a caller becomes due."""
        ...


@attrs.define(eq=False)
class _Waiter:
    terms: LeaseTerms
    deadline: datetime
    needs_look: bool
    """Nobody has looked since it came, nor lately enough before."""

    answer: asyncio.Future[list[LeasedTask]]

    def over(self, now: datetime) -> bool:
        """Whether it is to be answered with nothing."""
        return now >= self.deadline and not self.needs_look


@attrs.frozen(kw_only=True)
class Desk:
    """What the groups of one server share."""

    source: LeaseSource
    clock: Clock
    wake_up: WakeUp
    jitter: Jitter
    give_back: Callable[[Sequence[LeasedTask]], None]
    """Undoes, in the background, leases whose caller is gone."""


class Group:
    """The waiting Lease calls that ask for the same queues and types."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._waiters: list[_Waiter] = []
        self._signal: Signal | None = None
        self._dealing: asyncio.Task[None] | None = None
        self._look_at: datetime | None = None
        """When to look again, told or not; None: at once."""

    @property
    def idle(self) -> bool:
        """Whether nobody waits and nothing is being taken."""
        return self._dealing is None

    async def lease(self, terms: LeaseTerms) -> list[LeasedTask]:
        """Return tasks as soon as there are some, or none when the wait is over."""
        waiter = _Waiter(
            terms=terms,
            deadline=self._desk.clock.now() + terms.wait,
            # While the group pauses it has just found nothing, and will be told.
            needs_look=self._look_at is None or not terms.wait,
            answer=asyncio.get_running_loop().create_future(),
        )
        self._waiters.append(waiter)
        if self._dealing is None:
            self._dealing = asyncio.create_task(self._deal())
        elif self._signal is not None:
            self._signal.nudge()
        try:
            return await waiter.answer
        except asyncio.CancelledError:
            # Both can come in one turn of the loop: the answer, and the end of its caller.
            if waiter.answer.done() and not waiter.answer.cancelled():
                self._desk.give_back(waiter.answer.result())
            raise
        finally:
            self._waiters.remove(waiter)

    def dismiss(self) -> None:
        """Answer everybody who waits with nothing, as soon as a look under way has ended."""
        for waiter in self._waiters:
            waiter.deadline = self._desk.clock.now()
            waiter.needs_look = False
        if self._signal is not None:
            self._signal.nudge()

    async def close(self) -> None:
        """Dismiss everybody, and wait until it is done."""
        self.dismiss()
        if self._dealing is not None:
            await asyncio.wait({self._dealing})

    async def _deal(self) -> None:
        queues = self._waiters[0].terms.queues
        try:
            with self._desk.wake_up.listen(queues) as signal:
                self._signal = signal
                while waiters := self._open():
                    now = self._desk.clock.now()
                    if self._look_due(waiters, now):
                        await self._look(waiters)
                    elif not _answer_those_over(waiters, now) and await signal.wait(
                        timeout=self._pause(waiters, now)
                    ):
                        self._look_at = None
        except Exception as error:  # noqa: BLE001  it is its callers' to handle
            for waiter in self._open():
                waiter.answer.set_exception(error)
        finally:
            self._look_at = self._signal = self._dealing = None

    def _open(self) -> list[_Waiter]:
        return [waiter for waiter in self._waiters if not waiter.answer.done()]

    def _look_due(self, waiters: Sequence[_Waiter], now: datetime) -> bool:
        if all(waiter.over(now) for waiter in waiters):
            return False
        return (
            self._look_at is None
            or now >= self._look_at
            or any(waiter.needs_look for waiter in waiters)
        )

    async def _look(self, waiters: Sequence[_Waiter]) -> None:
        """Take what there is for those who wait, and set when to look again."""
        self._look_at = None
        taken = await self._desk.source.take([waiter.terms for waiter in waiters])
        for waiter, tasks in zip(waiters, taken.tasks, strict=True):
            waiter.needs_look = False
            if waiter.answer.done():
                self._desk.give_back(tasks)
            elif tasks:
                waiter.answer.set_result(tasks)
        if taken.dry and (left := self._open()):
            due_at = await self._desk.source.next_due(left[0].terms)
            pause = POLL_AT_LEAST_EVERY * (1 - self._desk.jitter.draw() / 2)
            poll_at = self._desk.clock.now() + pause
            self._look_at = poll_at if due_at is None else min(poll_at, due_at)

    def _pause(self, waiters: Sequence[_Waiter], now: datetime) -> timedelta:
        wake_at = min(waiter.deadline for waiter in waiters)
        if self._look_at is not None:
            wake_at = min(wake_at, self._look_at)
        return max(_SHORTEST_PAUSE, wake_at - now)


def _answer_those_over(waiters: Sequence[_Waiter], now: datetime) -> bool:
    over = [waiter for waiter in waiters if waiter.over(now)]
    for waiter in over:
        waiter.answer.set_result([])
    return bool(over)
