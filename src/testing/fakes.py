"""The driven ports without a world behind them: time that stands still, luck that is known."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Final, Protocol

from ..adapters.clock import SystemClock
from ..domain.ids import LeaseToken, QueueName, TaskId
from .builders import NOON, a_task_id


class ManualClock:
    """A `Clock` that moves when it is told to, and then rings what was set to ring."""

    def __init__(self, now: datetime = NOON, *, uncertainty: timedelta = timedelta(0)) -> None:
        self._now = now
        self._uncertainty = uncertainty
        self._alarms: set[ManualSignal] = set()

    def now(self) -> datetime:
        """Return the time that the test has set."""
        return self._now

    def uncertainty(self) -> timedelta:
        """Return what the test has set."""
        return self._uncertainty

    def advance(self, span: timedelta) -> None:
        """Let `span` pass; waits that end by then return."""
        self._now += span
        for alarm in [alarm for alarm in self._alarms if alarm.rings_by(self._now)]:
            alarm.nudge()

    def ring(self, alarm: ManualSignal) -> None:
        """Nudge `alarm` once its time has come."""
        self._alarms.add(alarm)

    def silence(self, alarm: ManualSignal) -> None:
        """Forget `alarm`."""
        self._alarms.discard(alarm)


class ManualSignal:
    """A `Signal` whose timeout is counted by a `ManualClock`."""

    def __init__(self, clock: ManualClock, wake_up: ManualWakeUp) -> None:
        self._clock = clock
        self._wake_up = wake_up
        self._woken = asyncio.Event()
        self._news = False
        self._ends_at: datetime | None = None

    def rings_by(self, now: datetime) -> bool:
        """Whether a wait with a timeout has come to its end."""
        return self._ends_at is not None and self._ends_at <= now

    def tell(self) -> None:
        """Let the next `wait`, or the one that is under way, return True."""
        self._news = True
        self.nudge()

    def nudge(self) -> None:
        """Let the next `wait`, or the one that is under way, return."""
        self._woken.set()
        self._wake_up.unpark(self)

    async def wait(self, *, timeout: timedelta) -> bool:  # noqa: ASYNC109  the port's signature
        """Return True once told since the last return, False by the clock or a nudge."""
        if not self._woken.is_set() and timeout > timedelta(0):
            self._ends_at = self._clock.now() + timeout
            self._clock.ring(self)
            self._wake_up.park(self)
            try:
                await self._woken.wait()
            finally:
                self._ends_at = None
                self._clock.silence(self)
                self._wake_up.unpark(self)
        news = self._news
        self._news = False
        self._woken.clear()
        return news


class ManualWakeUp:
    """A `WakeUp` on one event loop whose waits end by a word or by a `ManualClock`."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self._listeners: dict[QueueName, set[ManualSignal]] = {}
        self._parked: set[ManualSignal] = set()
        self._somebody_parked = asyncio.Event()

    def notify(self, queues: Collection[QueueName]) -> None:
        """Tell the listeners of these queues."""
        for queue in queues:
            for signal in set(self._listeners.get(queue, ())):
                signal.tell()

    @contextmanager
    def listen(self, queues: Collection[QueueName]) -> Iterator[ManualSignal]:
        """Listen until the block is left."""
        signal = ManualSignal(self._clock, self)
        for queue in queues:
            self._listeners.setdefault(queue, set()).add(signal)
        try:
            yield signal
        finally:
            for queue in queues:
                self._listeners[queue].discard(signal)

    async def until_waiting(self, number: int = 1) -> None:
        """Return once `number` listeners wait: nothing happens to them until somebody acts."""
        while len(self._parked) < number:
            self._somebody_parked.clear()
            await self._somebody_parked.wait()

    def park(self, signal: ManualSignal) -> None:
        """Note that somebody waits."""
        self._parked.add(signal)
        self._somebody_parked.set()

    def unpark(self, signal: ManualSignal) -> None:
        """Note that it was told, or went away."""
        self._parked.discard(signal)


class CountingIds:
    """
    `Ids` that count: task ids sort in the order of making, tokens read `token-1`.

    Two that serve one storage begin after different numbers.
    """

    def __init__(self, *, after: int = 0) -> None:
        self._tasks = after
        self._tokens = after

    def task_id(self) -> TaskId:
        """Return the next UUIDv7."""
        self._tasks += 1
        return a_task_id(self._tasks)

    def lease_token(self) -> LeaseToken:
        """Return the next token."""
        self._tokens += 1
        return LeaseToken(f"token-{self._tokens}")


class FixedJitter:
    """`Jitter` that always draws the same."""

    def __init__(self, value: float = 0.0) -> None:
        self._value = value

    def draw(self) -> float:
        """Return the value; in [0, 1)."""
        return self._value


class Time(Protocol):
    """What the suite of a `TaskQueue` does with time; manual or real."""

    def now(self) -> datetime:
        """Return the time of the queue under test."""
        ...

    async def pass_by(self, span: timedelta) -> None:
        """Return once `span` has passed for the queue under test."""
        ...

    async def until_waiting(self) -> None:
        """Return once a Lease call that was made waits for a task."""
        ...


_TURNS_TO_ARRIVE: Final = 10
"""Turns of the loop in which a call made in this process joins others that wait already."""


class ManualTime:
    """`Time` that passes only when a test says so: no test sleeps."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.wake_up = ManualWakeUp(self.clock)

    def now(self) -> datetime:
        """Return the time of `clock`."""
        return self.clock.now()

    async def pass_by(self, span: timedelta) -> None:
        """Move `clock`, which ends the waits of `wake_up`."""
        self.clock.advance(span)

    async def until_waiting(self) -> None:
        """Return once a wait of `wake_up` is under way."""
        for _ in range(_TURNS_TO_ARRIVE):
            await asyncio.sleep(0)
        await self.wake_up.until_waiting()


class RealTime:
    """`Time` for a queue whose clock a test cannot move, on this computer: tests sleep."""

    _MARGIN = timedelta(milliseconds=50)

    def now(self) -> datetime:
        """Return the time of the computer."""
        return SystemClock().now()

    async def pass_by(self, span: timedelta) -> None:
        """Sleep a little longer than `span`."""
        await asyncio.sleep((span + self._MARGIN).total_seconds())

    async def until_waiting(self) -> None:
        """Sleep for as long as a call needs to arrive."""
        await asyncio.sleep(4 * self._MARGIN.total_seconds())
