"""Where handlers run, and one call of one: from the payload's text to its settlement."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from ...domain.requests import Release, Settlement
from . import outcome
from .context import StopReason
from .handlers import Executor, Handler
from .held import Held
from .moment import Stopwatch

if TYPE_CHECKING:
    from .handler_process import HandlerProcesses

T = TypeVar("T")
_Work = Callable[[], None]


class Executors:
    """
    Runs each handler where it wants to be run. For one event loop.

    Raises:
        LoadError: a handler for processes cannot be found by its name.
    """

    def __init__(
        self,
        handlers: Mapping[str, Handler],
        *,
        size: int,
        stopwatch: Stopwatch,
    ) -> None:
        self._threads = HandlerThreads(size)
        self._stopwatch = stopwatch
        self._processes: HandlerProcesses | None = None
        if any(handler.executor is Executor.PROCESS for handler in handlers.values()):
            # Others should not pay for the import.
            from .handler_process import HandlerProcesses  # noqa: PLC0415

            self._processes = HandlerProcesses(handlers)

    async def start(self) -> None:
        """
        Make a first process, if there are handlers for processes.

        Raises:
            LoadError: they cannot be loaded there.
        """
        if self._processes is not None:
            await asyncio.wrap_future(self._threads.submit(self._processes.start_first))

    def close(self) -> None:
        """End the processes, and let each thread end after what it is doing."""
        if self._processes is not None:
            self._processes.close()
        self._threads.close()

    async def run(self, handler: Handler, held: Held) -> Settlement:
        """Run a handler, and return what to report. Never raises."""
        held.running = True
        try:
            settlement = await self._run(handler, held)
        finally:
            held.running = False
        if held.overdue(self._stopwatch()):
            # An event loop that was blocked could not be told in time.
            held.tell(StopReason.TIMEOUT)
        if held.context.cancel_reason is StopReason.TIMEOUT and handler.timeout is not None:
            return outcome.after_timeout(settlement, handler.timeout)
        return settlement

    async def _run(self, handler: Handler, held: Held) -> Settlement:
        match handler.executor:
            case Executor.LOOP:
                return await self._on_the_loop(handler, held)
            case Executor.THREAD:
                held.since = self._stopwatch()
                call = self._threads.submit(lambda: attempt_blocking(handler, held))
                return await asyncio.wrap_future(call)
            case Executor.PROCESS:
                return await self._in_a_process(held)

    async def _on_the_loop(self, handler: Handler, held: Held) -> Settlement:
        held.since = self._stopwatch()
        task = asyncio.create_task(
            attempt(handler, held),
            name=f"{held.context.type} {held.context.task_id}",
        )
        loop = asyncio.get_running_loop()
        held.handling = task
        held.told_by(lambda _: _cancel(task, loop))
        try:
            await asyncio.wait({task})
        finally:
            held.handling = held.tell_handler = None
        # Cancelled before its first step; later, `attempt` would have made a settlement of it.
        return Release(ref=held.ref) if task.cancelled() else task.result()

    async def _in_a_process(self, held: Held) -> Settlement:
        processes = self._processes
        if processes is None:
            raise RuntimeError("no handler was for a process as the worker started")

        def begun() -> None:
            held.since = self._stopwatch()

        try:
            call = self._threads.submit(lambda: processes.attempt(held, begun))
            return await asyncio.wrap_future(call)
        finally:
            held.tell_handler = None


def _cancel(task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> None:
    # On its own loop too: the handler may be what called this, and is cancelled as it waits next.
    try:
        loop.call_soon_threadsafe(task.cancel)
    except RuntimeError:
        return  # the loop is closed, and the handler with it


async def attempt(handler: Handler, held: Held) -> Settlement:
    """
    Call an `async def` handler, and return what it did. Never raises.

    Whatever the handler raises is its own affair: SystemExit fails the attempt and leaves
    the worker alone, and so do KeyboardInterrupt, since a worker that has the process for
    itself catches Ctrl-C as a signal, and a CancelledError that nobody asked for.
    """
    try:
        value = await handler.call(_payload(held), held.context)
    except BaseException as error:  # noqa: BLE001  a handler may raise anything; see above
        return outcome.of_error(held.ref, error, held.context.cancel_reason)
    return outcome.of_value(held.ref, value)


def attempt_blocking(handler: Handler, held: Held) -> Settlement:
    """Call a `def` handler, and return what it did. Never raises; see `attempt`."""
    try:
        value = handler.call(_payload(held), held.context)
    except BaseException as error:  # noqa: BLE001  a handler may raise anything; see above
        return outcome.of_error(held.ref, error, held.context.cancel_reason)
    return outcome.of_value(held.ref, value)


def _payload(held: Held) -> Any:
    try:
        return json.loads(held.leased.task.payload or "{}")
    except (ValueError, RecursionError) as error:
        raise outcome.UnreadablePayloadError("the payload is no JSON") from error


class HandlerThreads:
    """
    Up to `size` threads, started as they are needed.

    Unlike those of `concurrent.futures` they are daemons: a handler that never returns
    does not keep the process from ending. For use from one thread.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._started = 0
        self._idle = threading.Semaphore(0)
        self._work: SimpleQueue[_Work | None] = SimpleQueue()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Run `call` in a thread. Its future cannot be cancelled."""
        future: Future[T] = Future()
        future.set_running_or_notify_cancel()
        self._work.put(lambda: self._settle(future, call))
        if not self._idle.acquire(blocking=False) and self._started < self._size:
            self._started += 1
            name = f"leaseq-handler-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        return future

    def close(self) -> None:
        """Let each thread end after what it is doing."""
        for _ in range(self._started):
            self._work.put(None)

    def _serve(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def _settle(self, future: Future[T], call: Callable[[], T]) -> None:
        # Idle before the future is done: who waits for it may bring the next call at once.
        try:
            result = call()
        except BaseException as error:  # noqa: BLE001  it belongs to whoever waits
            self._idle.release()
            future.set_exception(error)
        else:
            self._idle.release()
            future.set_result(result)
