"""Storages side by side: each is asked the same, and must answer the same."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar

import attrs

from ...domain.errors import LeaseLostError, TaskQueueError
from ...domain.ports import Storage
from ...domain.storing import Selection
from ..conformance.queue_fixtures import Services, serving
from ..fakes import CountingIds, ManualClock, ManualWakeUp

T = TypeVar("T")
Call = Callable[[Services], Awaitable[T]]

PROCESSES: Final = 2
_IDS_OF_A_PROCESS: Final = 1_000_000
_PATIENCE_SECONDS: Final = 60


class Stage:
    """Two processes on each of some storages, and one time for all; driven from a thread."""

    def __init__(self, storages: Mapping[str, Storage], loop: asyncio.AbstractEventLoop) -> None:
        self._storages = storages
        self._loop = loop
        self._opened = AsyncExitStack()
        self._clock = ManualClock()
        self._sides: dict[str, list[Services]] = {}

    def now(self) -> datetime:
        """Return the time of all processes."""
        return self._clock.now()

    def begin(self) -> None:
        """Start the processes at noon, with storages that are empty."""
        self._clock = ManualClock()
        self._run(self._begin())

    async def _begin(self) -> None:
        self._sides = {}
        for name, storage in self._storages.items():
            await _empty(storage)
            self._sides[name] = [
                await self._opened.enter_async_context(
                    serving(
                        storage,
                        CountingIds(after=process * _IDS_OF_A_PROCESS),
                        self._clock,
                        ManualWakeUp(self._clock),
                    )
                )
                for process in range(PROCESSES)
            ]

    def end(self) -> None:
        """Stop the processes."""
        self._run(self._opened.aclose())

    def pass_by(self, span: timedelta) -> None:
        """Let time pass for all."""
        self._clock.advance(span)

    def ask(self, process: int, call: Call[T]) -> T | TaskQueueError:
        """Return the answer of the process of that number, which is the same on each storage."""
        answers = self._run(self._ask(process, call))
        [(first, expected), *others] = answers.items()
        for name, answer in others:
            assert _told(answer) == _told(expected), f"{name} answers otherwise than {first}"
        return expected

    async def _ask(self, process: int, call: Call[T]) -> dict[str, T | TaskQueueError]:
        asked = [_answer(call, processes[process]) for processes in self._sides.values()]
        return dict(zip(self._sides, await asyncio.gather(*asked), strict=True))

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_PATIENCE_SECONDS)


def word(answer: object) -> str:
    """Return `ok`, why a lease was lost, or the name of an error."""
    if isinstance(answer, LeaseLostError):
        return answer.reason.value
    return type(answer).__name__ if isinstance(answer, TaskQueueError) else "ok"


def _told(answer: object) -> object:
    """Return `answer` with errors as what they say: an error equals itself alone."""
    if isinstance(answer, list):
        return [_told(item) for item in answer]
    return (word(answer), str(answer)) if isinstance(answer, TaskQueueError) else answer


async def _answer(call: Call[T], services: Services) -> T | TaskQueueError:
    try:
        return await call(services)
    except TaskQueueError as refusal:
        return refusal


async def _empty(storage: Storage) -> None:
    while found := (await storage.tasks.search(Selection(), limit=1000, with_payload=False)).tasks:
        await storage.tasks.delete(found)
    for queue in await storage.queues.all():
        resumed = attrs.evolve(queue, paused=False, version=queue.version + 1)
        await storage.queues.replace(queue, resumed)
