"""SIGTERM and SIGINT, caught for a while and then given back."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def caught(on_signal: Callable[[int], None]) -> Iterator[None]:
    """
    Call `on_signal` with each SIGTERM and SIGINT while the block runs.

    Installed explicitly, since process 1 of a container ignores a SIGTERM that nobody
    handles. What was installed before is restored. Outside the main thread, where Python
    takes no signals, nothing is caught.

    Args:
        on_signal: called between any two instructions of the main thread, even while it
            runs a handler that blocks the event loop; so it may only do what can be done
            there, such as to put into a `queue.SimpleQueue`.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, _: FrameType | None) -> None:
        on_signal(number)

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            # None: installed by something that is not Python, and cannot be put back by it.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
