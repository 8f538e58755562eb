"""
What callers ask for, as plain values.

They carry what the caller said, unchecked: `validation` checks it, so that every
door gives the same verdict on the same input.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import attrs

from .task import Status, TaskError


@attrs.frozen(kw_only=True)
class NewTask:
    """A task to enqueue."""

    type: str
    """A name that chooses the handler."""

    payload: str = "{}"
    """A JSON object of at most 1 MiB; an empty text means `{}`."""

    queue: str = ""
    """A name; an empty text means `default`."""

    idempotency_key: str = ""
    """At most 255 bytes, unique in its queue while the task is stored; empty: none."""

    allow_different_payload: bool = False
    """Take the task that holds the key for an answer even if its content differs."""

    priority: int = 0
    """0 to 255; higher is leased first."""

    max_attempts: int | None = None
    """1 to 1000; None: 10."""

    delay: timedelta | None = None
    """0 to 365 days from now. Not together with `run_after`."""

    run_after: datetime | None = None
    """Aware, at most 365 days ahead; the past means now."""

    retry_base: timedelta | None = None
    """1 ms to 1 day; None: 2 s (or the cap, if that is less)."""

    retry_cap: timedelta | None = None
    """From the base to 30 days; None: 1 h (or the base, if that is more)."""


@attrs.frozen(kw_only=True)
class LeaseRequest:
    """A worker's wish for tasks."""

    worker_id: str
    """A name, new for each start of a worker."""

    queues: tuple[str, ...] = ()
    """At most 100 names; empty: `default`."""

    types: tuple[str, ...] = ()
    """At most 100 names; empty: any."""

    lease_duration: timedelta | None = None
    """1 s to 12 h; None: 30 s."""

    max_tasks: int = 1
    """1 to 1000. Fewer may come: one reply holds at most 3 MiB of payload."""

    wait: timedelta = timedelta(0)
    """How long to wait for a first task; not negative, cut to 30 s."""

    strict_order: bool = False
    """Serve the queues in the order given; else each call begins with the next one."""


@attrs.frozen(kw_only=True)
class LeaseRef:
    """One lease of one task."""

    task_id: str
    lease_token: str


@attrs.frozen(kw_only=True)
class HeartbeatRequest:
    """A worker's word that it still works under these leases."""

    worker_id: str
    leases: tuple[LeaseRef, ...]
    lease_duration: timedelta | None = None
    """1 s to 12 h from now; None: 30 s."""


@attrs.frozen(kw_only=True)
class Complete:
    """The attempt ended well."""

    ref: LeaseRef
    result: str = ""
    """JSON of at most 1 MiB; empty: none."""


@attrs.frozen(kw_only=True)
class Fail:
    """The attempt went wrong."""

    ref: LeaseRef
    error: TaskError = attrs.field(factory=TaskError)
    retry: bool = True
    """False: trying again is useless, give the task up as `failed`."""

    retry_after: timedelta | None = None
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

    queue: str = ""
    """A name; empty: all queues."""

    type: str = ""
    """A name; empty: all types."""

    statuses: tuple[Status, ...] = ()
    """Empty: all."""

    idempotency_key: str = ""
    """Empty: any."""


@attrs.frozen(kw_only=True)
class PageRequest:
    """One page of a list, newest task first."""

    size: int = 100
    """1 to 1000."""

    cursor: str = ""
    """What the page before said, or a task's id: begins after it. Empty: the first page."""

    with_payload: bool = False
    """Also read payloads and results. A page then ends early at 3 MiB."""
