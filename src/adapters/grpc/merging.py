"""
Enqueues of single tasks that callers make at the same time, sent together.

A call that is alone is sent at once and by itself. What comes while others are under way
travels together as soon as they end, and after `PATIENCE` in any case: one server that does
not answer holds up nobody whom another would serve.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final, Generic, TypeVar

import attrs

from ...domain.errors import StorageUnavailableError
from ...domain.limits import MAX_BATCH
from ..batching.coalescer import Coalescer
from ..forks import FORKS

Item = TypeVar("Item")
Answer = TypeVar("Answer")

PATIENCE: Final = timedelta(milliseconds=100)


class AioMerger(Generic[Item, Answer]):
    """For callers on one event loop, of whom one that is cancelled harms no other."""

    def __init__(
        self, send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]], *, within: timedelta
    ) -> None:
        self._send = send
        self._within = within.total_seconds()
        self._coalescer = Coalescer(send, linger=False, patience=PATIENCE)
        self._alone = False

    async def submit(self, item: Item) -> Answer:
        """
        Return the answer to `item`, or raise what sending it raised.

        Raises:
            StorageUnavailableError: there is none in time.
        """
        if not self._alone and self._coalescer.idle:
            self._alone = True
            try:
                [answer] = await self._send([item])
            finally:
                self._alone = False
            return answer
        try:
            async with asyncio.timeout(self._within) as limit:
                [answer] = await self._coalescer.submit([item])
        except TimeoutError:
            if not limit.expired():
                raise
            raise StorageUnavailableError(f"no answer came within {self._within:g} s") from None
        return answer

    async def close(self) -> None:
        """Wait until what is under way has ended."""
        await self._coalescer.close()


@attrs.define(eq=False)
class _Call(Generic[Item, Answer]):
    item: Item
    turn: threading.Event = attrs.field(factory=threading.Event)
    """Set when it is answered, and when it is to send what waits."""

    answer: list[Answer] = attrs.field(factory=list)
    error: BaseException | None = None

    @property
    def settled(self) -> bool:
        return bool(self.answer) or self.error is not None


class ThreadMerger(Generic[Item, Answer]):
    """For callers on any thread, one of whom sends for all; its coroutines never suspend."""

    def __init__(
        self,
        send: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]],
        *,
        within: timedelta,
        now: Callable[[], float],
    ) -> None:
        self._send = send
        self._within = within.total_seconds()
        self._now = now
        self.forget()
        FORKS.remember(self)

    def forget(self) -> None:
        """Be as new; see `Forgetful.forget`."""
        self._lock = threading.RLock()  # a signal's handler may come in between, and enqueue
        self._alone = False
        self._leader: _Call[Item, Answer] | None = None
        self._waiting: dict[_Call[Item, Answer], None] = {}

    async def submit(self, item: Item) -> Answer:
        """Return the answer to `item`; see `AioMerger.submit`."""
        with self._lock:
            alone = not self._alone and self._leader is None
            if alone:
                self._alone = True
            else:
                call = self._joined(item)
        if not alone:
            return await self._merged(call)
        try:
            [answer] = await self._send([item])
        finally:
            with self._lock:
                self._alone = False
        return answer

    def _joined(self, item: Item) -> _Call[Item, Answer]:
        call: _Call[Item, Answer] = _Call(item)
        self._waiting[call] = None
        if self._leader is None:
            self._lead_next()
        return call

    async def _merged(self, call: _Call[Item, Answer]) -> Answer:
        deadline = self._now() + self._within
        pause = PATIENCE.total_seconds()
        while not call.settled:
            call.turn.wait(min(pause, max(0.0, deadline - self._now())))
            if batch := self._batch_for(call):
                await self._send_batch(call, batch)
            elif not call.settled and self._now() >= deadline:
                raise StorageUnavailableError(f"no answer came within {self._within:g} s")
            pause = self._within
        if call.error is not None:
            raise call.error
        return call.answer[0]

    def _batch_for(self, call: _Call[Item, Answer]) -> list[_Call[Item, Answer]]:
        """Return what `call` shall send: nothing, if it has been sent by another."""
        with self._lock:
            if call not in self._waiting:
                call.turn.clear()
                return []
            others = [other for other in self._waiting if other is not call][: MAX_BATCH - 1]
            batch = [call, *others]
            for each in batch:
                del self._waiting[each]
            self._leader = call
            return batch

    async def _send_batch(
        self, leader: _Call[Item, Answer], batch: Sequence[_Call[Item, Answer]]
    ) -> None:
        try:
            answers = await self._send([call.item for call in batch])
            for call, answer in zip(batch, answers, strict=True):
                call.answer.append(answer)
        except Exception as error:  # noqa: BLE001  it is its callers' to handle
            for call in batch:
                call.error = error
        except BaseException:
            for call in batch:
                call.error = StorageUnavailableError("the thread that sent it was interrupted")
            raise
        finally:
            with self._lock:
                if self._leader is leader:
                    self._leader = None
                    self._lead_next()
            for call in batch:
                call.turn.set()

    def _lead_next(self) -> None:
        self._leader = next(iter(self._waiting), None)
        if self._leader is not None:
            self._leader.turn.set()
