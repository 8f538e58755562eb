"""Threads for `def` handlers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")
_Work = Callable[[], None]


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
