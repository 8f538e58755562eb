"""Work that must not stop half way when its caller is cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from datetime import timedelta
from typing import Any, Final, Protocol, TypeVar

from ...domain.errors import TaskQueueError

T = TypeVar("T")

_FIRST_PAUSE: Final = 0.02
_LONGEST_PAUSE: Final = 0.5

_log = logging.getLogger(__name__)


class Shelter(Protocol):
    """Carries work to its end though its caller is cancelled."""

    async def finish(
        self,
        work: Coroutine[Any, Any, T],
        *,
        hasten: Callable[[], Awaitable[bool]],
        if_abandoned: Callable[[T], Awaitable[None]],
    ) -> T:
        """
        Return what `work` returns.

        A caller that is cancelled meanwhile is let go at once. `hasten`, called again and
        again while it returns that it was heard, is then to bring the work to its end, and
        what that still returns goes to `if_abandoned`.
        """
        ...


class TaskShelter:
    """
    A `Shelter` that runs each work as a task of its own.

    Args:
        patience: how long abandoned work may take, once nobody hears that it is to end, before
            it is cancelled as well.
    """

    def __init__(self, *, patience: timedelta) -> None:
        self._patience = patience
        self._abandoned: set[asyncio.Task[None]] = set()

    async def finish(
        self,
        work: Coroutine[Any, Any, T],
        *,
        hasten: Callable[[], Awaitable[bool]],
        if_abandoned: Callable[[T], Awaitable[None]],
    ) -> T:
        """Return what `work` returns; see `Shelter.finish`."""
        running = asyncio.create_task(work)
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            # The caller may also have been cancelled after the work was done.
            self._keep(self._hand_over(running, hasten, if_abandoned))
            raise

    async def empty(self) -> None:
        """Return when no abandoned work is left."""
        while self._abandoned:
            await asyncio.wait(self._abandoned)

    def _keep(self, ending: Coroutine[Any, Any, None]) -> None:
        # The loop itself holds tasks only weakly.
        task = asyncio.create_task(ending)
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)

    async def _hand_over(
        self,
        running: asyncio.Task[T],
        hasten: Callable[[], Awaitable[bool]],
        if_abandoned: Callable[[T], Awaitable[None]],
    ) -> None:
        try:
            await _bring_to_its_end(running, hasten)
            await asyncio.wait([running], timeout=self._patience.total_seconds())
            running.cancel()
            await if_abandoned(await running)
        except asyncio.CancelledError:
            return
        except TaskQueueError as error:
            _log.warning("abandoned work could not be wound up: %s", error)


async def _bring_to_its_end(
    running: asyncio.Task[T], hasten: Callable[[], Awaitable[bool]]
) -> None:
    pause = _FIRST_PAUSE
    # One word may come before the work has begun where it is heard.
    while not running.done() and await hasten():
        await asyncio.wait([running], timeout=pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


class NoShelter:
    """A `Shelter` for callers that nobody can cancel, such as those without an event loop."""

    async def finish(
        self,
        work: Coroutine[Any, Any, T],
        *,
        hasten: Callable[[], Awaitable[bool]],  # noqa: ARG002  the port's signature
        if_abandoned: Callable[[T], Awaitable[None]],  # noqa: ARG002  the port's signature
    ) -> T:
        """Return what `work` returns."""
        return await work
