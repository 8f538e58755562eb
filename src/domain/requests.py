"""
What callers ask for, as plain values.

They hold what the caller said: what is of another type is refused as the value is made,
what is out of bounds by `validation`; so every door gives the same verdict on the same
input, and a caller's mistake reaches nobody else's batch.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from .errors import FieldViolation, InvalidArgumentError
from .task import Status, TaskError


def _must(words: str, holds: Callable[[Any], bool]) -> Callable[[object, Any, Any], None]:
    def check(_: object, attribute: attrs.Attribute[Any], value: Any) -> None:
        if not holds(value):
            fault = FieldViolation(field=attribute.name, description=f"must be {words}")
            raise InvalidArgumentError([fault])

    return check


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_text: Final = _must("a text", lambda value: isinstance(value, str))
_texts: Final = _must(
    "a tuple of texts",
    lambda value: isinstance(value, tuple) and all(isinstance(one, str) for one in value),
)
_whole: Final = _must("a whole number", _is_whole)
_whole_or_none: Final = _must("a whole number", lambda value: value is None or _is_whole(value))
_switch: Final = _must("true or false", lambda value: isinstance(value, bool))
_span: Final = _must("a timedelta", lambda value: isinstance(value, timedelta))
_span_or_none: Final = _must(
    "a timedelta", lambda value: value is None or isinstance(value, timedelta)
)
_moment_or_none: Final = _must(
    "a datetime", lambda value: value is None or isinstance(value, datetime)
)
_statuses: Final = _must(
    "a tuple of statuses",
    lambda value: isinstance(value, tuple) and all(isinstance(one, Status) for one in value),
)


@attrs.frozen(kw_only=True)
class NewTask:
    """A task to enqueue."""

    type: str = attrs.field(validator=_text)
    """A name that chooses the handler."""

    payload: str = attrs.field(default="{}", validator=_text)
    """A JSON object of at most 1 MiB; an empty text means `{}`."""

    queue: str = attrs.field(default="", validator=_text)
    """A name; an empty text means `default`."""

    idempotency_key: str = attrs.field(default="", validator=_text)
    """At most 255 bytes, unique in its queue while the task is stored; empty: none."""

    task_id: str = attrs.field(default="", validator=_text)
    """A new UUIDv7, so that a repeat changes nothing; empty: one is made for each enqueue."""

    allow_different_payload: bool = attrs.field(default=False, validator=_switch)
    """Take the task that holds the key for an answer even if its content differs."""

    priority: int = attrs.field(default=0, validator=_whole)
    """0 to 255; higher is leased first."""

    max_attempts: int | None = attrs.field(default=None, validator=_whole_or_none)
    """1 to 1000; None: 10."""

    delay: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """0 to 365 days from now. Not together with `run_after`."""

    run_after: datetime | None = attrs.field(default=None, validator=_moment_or_none)
    """Aware, at most 365 days ahead; the past means now."""

    retry_base: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """1 ms to 1 day; None: 2 s (or the cap, if that is less)."""

    retry_cap: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """From the base to 30 days; None: 1 h (or the base, if that is more)."""


@attrs.frozen(kw_only=True)
class LeaseRequest:
    """A worker's wish for tasks."""

    worker_id: str = attrs.field(validator=_text)
    """A name, new for each start of a worker."""

    queues: tuple[str, ...] = attrs.field(default=(), validator=_texts)
    """At most 100 names; empty: `default`."""

    types: tuple[str, ...] = attrs.field(default=(), validator=_texts)
    """At most 100 names; empty: any."""

    lease_duration: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """1 s to 12 h; None: 30 s."""

    max_tasks: int = attrs.field(default=1, validator=_whole)
    """1 to 1000. Fewer may come: one reply holds at most 3 MiB of payload."""

    wait: timedelta = attrs.field(default=timedelta(0), validator=_span)
    """How long to wait for a first task; not negative, cut to 30 s."""

    strict_order: bool = attrs.field(default=False, validator=_switch)
    """Serve the queues in the order given; else each call begins with the next one."""


@attrs.frozen(kw_only=True)
class LeaseRef:
    """One lease of one task."""

    task_id: str = attrs.field(validator=_text)
    lease_token: str = attrs.field(validator=_text)


@attrs.frozen(kw_only=True)
class HeartbeatRequest:
    """A worker's word that it still works under these leases."""

    worker_id: str = attrs.field(validator=_text)
    leases: tuple[LeaseRef, ...]
    lease_duration: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """1 s to 12 h from now; None: 30 s."""


@attrs.frozen(kw_only=True)
class Complete:
    """The attempt ended well."""

    ref: LeaseRef
    result: str = attrs.field(default="", validator=_text)
    """JSON of at most 1 MiB; empty: none."""


@attrs.frozen(kw_only=True)
class Fail:
    """The attempt went wrong."""

    ref: LeaseRef
    error: TaskError = attrs.field(factory=TaskError)
    retry: bool = attrs.field(default=True, validator=_switch)
    """False: trying again is useless, give the task up as `failed`."""

    retry_after: timedelta | None = attrs.field(default=None, validator=_span_or_none)
    """0 to 365 days; overrides the backoff this once."""


@attrs.frozen(kw_only=True)
class Release:
    """The task is given back, uncounted."""

    ref: LeaseRef
    undelivered: bool = False
    """It never reached who was to run it: not even counted as a release."""


Settlement = Complete | Fail | Release


@attrs.frozen(kw_only=True)
class TaskFilter:
    """Which tasks an operator wants to see; every part narrows."""

    queue: str = attrs.field(default="", validator=_text)
    """A name; empty: all queues."""

    type: str = attrs.field(default="", validator=_text)
    """A name; empty: all types."""

    statuses: tuple[Status, ...] = attrs.field(default=(), validator=_statuses)
    """Empty: all."""

    idempotency_key: str = attrs.field(default="", validator=_text)
    """Empty: any."""


@attrs.frozen(kw_only=True)
class PageRequest:
    """One page of a list, newest task first."""

    size: int = attrs.field(default=100, validator=_whole)
    """1 to 1000."""

    cursor: str = attrs.field(default="", validator=_text)
    """What the page before said, or a task's id: begins after it. Empty: the first page."""

    with_payload: bool = attrs.field(default=False, validator=_switch)
    """Also read payloads and results. A page then ends early at 3 MiB."""
