"""
What a handler did, as the settlement that reports it.

Decisions as values: nothing here talks to a queue, reads a clock or logs.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import traceback
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import Final

from ...domain.error_text import clean_error
from ...domain.json_text import normalise
from ...domain.limits import MAX_DELAY
from ...domain.requests import Complete, Fail, LeaseRef, Release, Settlement
from ...domain.task import TaskError
from ..durations import as_span
from .context import StopReason

_OWN_FOLDER: Final = str(Path(__file__).parent)


class Retry(Exception):  # noqa: N818  it reads as what the handler asks for: `raise Retry(...)`
    """
    Raised by a handler to have its task tried again, counted as a failed attempt.

    Args:
        reason: what to keep as the error's text.
        after: when, as a timedelta or in seconds, 0 to 365 days; None: the task's backoff.
    """

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        super().__init__(reason or "the handler asked for another attempt")
        self.after = None if after is None else _wait(after)


class PermanentFailure(Exception):  # noqa: N818  it reads as what the handler says
    """Raised by a handler when trying again is useless: the task is given up as failed."""


class UnreadablePayloadError(Exception):
    """The payload is no JSON; nothing that a handler could do about it."""


def of_value(ref: LeaseRef, value: object) -> Complete | Fail:
    """Return the settlement for a handler that returned `value`."""
    if value is None:
        return Complete(ref=ref)
    if inspect.isawaitable(value):
        if inspect.iscoroutine(value):
            value.close()
        return _useless(ref, "the handler returned an awaitable; declare it with `async def`")
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        return Complete(ref=ref, result=normalise(text))
    except Exception as error:  # noqa: BLE001  the value's own methods may raise anything
        return _useless(ref, f"the result cannot be kept as JSON: {_text(error)}")


def of_error(ref: LeaseRef, error: BaseException, stop: StopReason | None) -> Fail | Release:
    """
    Return the settlement for a handler that raised `error`.

    Args:
        ref: the lease.
        error: what it raised.
        stop: why it had been told to stop, or None. Then an error that says nothing
            about the task gives it back uncounted: a shutdown fails no task, and a task
            that was called off ends as cancelled.
    """
    reported = _described(error)
    match error:
        case Retry():
            return Fail(ref=ref, error=reported, retry_after=error.after)
        case PermanentFailure() | UnreadablePayloadError():
            return Fail(ref=ref, error=reported, retry=False)
        case _ if stop is StopReason.SHUTDOWN:
            return Release(ref=ref)
        case asyncio.CancelledError() if stop not in {None, StopReason.TIMEOUT}:
            return Release(ref=ref)
        case _:
            return Fail(ref=ref, error=reported)


def of_timeout(ref: LeaseRef, timeout: float, *, traceback: str = "") -> Fail:
    """Return the settlement for a handler that took longer than it may."""
    message = f"the handler took longer than its timeout of {timeout:g} s"
    error = TaskError(type="HandlerTimeout", message=message, traceback=traceback)
    return Fail(ref=ref, error=error)


def after_timeout(settlement: Settlement, timeout: float) -> Settlement:
    """
    Return what to report instead of `settlement` of a handler that took too long.

    `PermanentFailure` and `Retry(after=...)` stand: they are said on purpose.
    """
    match settlement:
        case Fail(retry=False):
            return settlement
        case Fail(retry_after=after) if after is not None:
            return settlement
        case Fail(error=error):
            # Where it was as it was cancelled.
            return of_timeout(settlement.ref, timeout, traceback=error.traceback)
        case _:
            return of_timeout(settlement.ref, timeout)


def of_death(ref: LeaseRef, how: str, stop: StopReason | None) -> Fail | Release:
    """
    Return the settlement for a handler whose process ended under it.

    Args:
        ref: the lease.
        how: it ended, in words.
        stop: why it had been told to stop, or None; see `of_error`.
    """
    if stop in {StopReason.SHUTDOWN, StopReason.CANCEL_REQUESTED}:
        return Release(ref=ref)
    message = f"the process of the handler {how}"
    return Fail(ref=ref, error=TaskError(type="HandlerProcessDied", message=message))


def of_refusal(settlement: Settlement, why: Exception) -> Fail | None:
    """Return what to report after the queue called `settlement` nonsense; None: nothing."""
    match settlement:
        case Complete(ref=ref):
            return _useless(ref, f"the queue refused the result: {_text(why)}")
        case _:
            return None


def _useless(ref: LeaseRef, message: str) -> Fail:
    type_, message, _ = clean_error("UnusableResult", message, "")
    return Fail(ref=ref, error=TaskError(type=type_, message=message), retry=False)


def _described(error: BaseException) -> TaskError:
    # Cut here already, since a text of many megabytes would not even travel.
    type_, message, trace = clean_error(type(error).__qualname__, _text(error), _trace(error))
    return TaskError(type=type_, message=message, traceback=trace)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  `__str__` of somebody else's class
        return "(its text cannot be read)"


def _trace(error: BaseException) -> str:
    try:
        shown = traceback.TracebackException(
            type(error), error, _from_the_handler_on(error.__traceback__)
        )
        return "".join(shown.format())
    except Exception:  # noqa: BLE001  it reads attributes of somebody else's class
        return ""


def _from_the_handler_on(trace: TracebackType | None) -> TracebackType | None:
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_OWN_FOLDER):
        trace = trace.tb_next
    return trace


def _wait(after: timedelta | float) -> timedelta:
    span = as_span("after", after)
    if not timedelta(0) <= span <= MAX_DELAY:
        raise ValueError(f"after must be from 0 to 365 days, not {span}")
    return span
