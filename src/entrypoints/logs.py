"""
How a process logs: lines of text on a terminal, JSON for collectors.

Modules log through `logging`: a constant message, and ids and names in `extra`. What
others' exceptions say is left out, since a driver's message may quote a payload; the
places they went through are kept.
"""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import structlog
from structlog.typing import EventDict, Processor

from ..domain.errors import TaskQueueError
from .printable import printable
from .settings import LogFormat, LogLevel
from .urls import redacted

_MOST_FRAMES: Final = 20
_REPEATED_AFTER: Final = 10.0
_PACKAGE: Final = __name__.partition(".")[0]


def configure_logging(*, level: LogLevel, form: LogFormat) -> None:
    """Let everything in this process that logs do so on the standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(form, on_terminal=sys.stderr.isatty()))
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level.upper())
    # Of every selector an event loop makes.
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    # Every attempt of every connection, as long as a database is away. That nothing can be had
    # is told by those who wanted it; this says why.
    logging.getLogger("psycopg.pool").filters = [NowAndThen(seconds=_REPEATED_AFTER)]


class NowAndThen(logging.Filter):
    """Lets a message through only if it was not let through within the last `seconds`."""

    def __init__(self, *, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to let it through; its arguments do not make it another message."""
        message = str(record.msg)
        last = self._last.get(message)
        # A clock that was set back silences nobody.
        if last is not None and 0 <= record.created - last < self._seconds:
            return False
        self._last[message] = record.created
        return True


@contextmanager
def heard() -> Iterator[None]:
    """
    Let leaseq log on the standard error meanwhile, in a program that configured no logging.

    Only what leaseq itself logs, from INFO on unless its logger has a level. As soon as the
    program gives the root logger a handler, that one has the word alone.
    """
    ours = logging.getLogger(_PACKAGE)
    if ours.hasHandlers():
        yield
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter("auto", on_terminal=sys.stderr.isatty()))
    handler.addFilter(lambda _: not logging.getLogger().handlers)
    level = ours.level
    ours.addHandler(handler)
    ours.setLevel(level or logging.INFO)
    try:
        yield
    finally:
        ours.removeHandler(handler)
        ours.setLevel(level)


def formatter(form: LogFormat, *, on_terminal: bool) -> logging.Formatter:
    """Return what turns a record of `logging` into one line."""
    as_text = form == "text" or (form == "auto" and on_terminal)
    render: Processor = (
        structlog.dev.ConsoleRenderer(colors=on_terminal, pad_event_to=0)
        if as_text
        else structlog.processors.JSONRenderer()
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _without_foreign_words,
            _without_passwords,
            _on_one_line,
            render,
        ],
    )


def _without_foreign_words(_: Any, __: str, event: EventDict) -> EventDict:
    exc_info = event.pop("exc_info", None)
    error = exc_info[1] if isinstance(exc_info, tuple) else exc_info
    if isinstance(error, BaseException):
        event["raised"] = [described(each) for each in _chain(error)]
    return event


def _without_passwords(_: Any, __: str, event: EventDict) -> EventDict:
    # The driver's pool quotes what libpq says, and that may quote what it was told.
    if str(event.get("logger", "")).startswith("psycopg"):
        event["event"] = redacted(str(event.get("event", "")))
    return event


def _on_one_line(_: Any, __: str, event: EventDict) -> EventDict:
    return {
        key: printable(value) if isinstance(value, str) else value for key, value in event.items()
    }


def described(error: BaseException) -> str:
    """Return what may be logged of an exception: its type, its places, and our own words."""
    name = type(error).__qualname__
    words = f"{name}: {error}" if isinstance(error, TaskQueueError) else name
    frames = traceback.extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    places = [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
    return printable(" < ".join([words, *reversed(places)]))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        yield link
        seen.add(id(link))
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
