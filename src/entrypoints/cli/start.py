"""
Where the `leaseq` command begins and ends, and what Ctrl-C does there.

What is imported at the top is loaded by nearly every Python, since Ctrl-C may come before a
command has begun: then the process just ends. While a command runs it is Python's
KeyboardInterrupt, so that things can be put in order. When it is over Ctrl-C means nothing.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    from types import FrameType, TracebackType

_INTERRUPTED: Final = 130
"""The exit code after Ctrl-C: what shells make of the signal."""


def main() -> None:
    """Run the command line of this process."""
    # Whoever starts a command in the background may have it ignore Ctrl-C; so it stays.
    minds = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if minds:
        signal.signal(signal.SIGINT, _leave)
        # Ctrl-C may strike between any two lines here, and where Python cannot raise.
        sys.excepthook = _end
        sys.unraisablehook = _end_if_interrupted
    from .main import run  # noqa: PLC0415  what takes its time

    try:
        if minds:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        run()
    finally:
        if minds:
            # What it came to stands, and what Python does at its end is over in a moment.
            signal.signal(signal.SIGINT, signal.SIG_IGN)


def _leave(_: int, __: FrameType | None) -> NoReturn:
    # No exception: one would come out of imports that are half done, with noise.
    os._exit(_INTERRUPTED)


def _end(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _end_if_interrupted(unraisable: sys.UnraisableHookArgs) -> None:
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        os._exit(_INTERRUPTED)
    sys.__unraisablehook__(unraisable)
