"""From what Python programs have at hand to a `NewTask`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack

from ..domain.errors import FieldViolation, InvalidArgumentError
from ..domain.requests import NewTask
from .durations import as_span
from .keywords import refuse_unknown

Payload = Mapping[str, Any] | str | None
"""A mapping that is spelt as a JSON object, or the text of one; None: an empty one."""

Span = timedelta | float
"""A timedelta, or seconds."""


class TaskOptions(TypedDict, total=False):
    """What may be said of a task beside its type and payload; `NewTask` has the bounds."""

    queue: str
    """Left out: `default`."""

    priority: int
    """0 to 255; higher is leased first."""

    delay: Span
    run_after: datetime
    """Aware. Not together with `delay`."""

    max_attempts: int
    retry_base: Span
    retry_cap: Span
    idempotency_key: str
    """Unique in its queue while the task is stored."""

    task_id: str
    """A new UUIDv7, under which a repeat changes nothing; left out: one is made."""

    allow_different_payload: bool
    """Take the task that holds the key for an answer even if its content differs."""


def new_task(type_: str, payload: Payload = None, **options: Unpack[TaskOptions]) -> NewTask:
    """
    Return the task that these arguments ask for.

    Raises:
        InvalidArgumentError: the payload is no JSON, or a span is not finite.
        TypeError: there is no such option, or a span is no number.
    """
    refuse_unknown(options, TaskOptions)
    return NewTask(
        type=type_,
        payload=payload_text(payload),
        queue=options.get("queue", ""),
        priority=options.get("priority", 0),
        delay=_span("delay", options.get("delay")),
        run_after=options.get("run_after"),
        max_attempts=options.get("max_attempts"),
        retry_base=_span("retry_base", options.get("retry_base")),
        retry_cap=_span("retry_cap", options.get("retry_cap")),
        idempotency_key=options.get("idempotency_key", ""),
        task_id=options.get("task_id", ""),
        allow_different_payload=options.get("allow_different_payload", False),
    )


def payload_text(payload: Payload) -> str:
    """
    Return the JSON of `payload`; a text is taken as it is.

    Raises:
        InvalidArgumentError: it is neither, or holds something that JSON has no word for.
    """
    if payload is None:
        return ""
    if isinstance(payload, str):
        return payload
    # A list of pairs would pass for a dict below.
    if not isinstance(payload, Mapping):
        raise _refused("payload", "must be a mapping or the text of a JSON object")
    try:
        # A dict first: json knows no other mapping.
        return json.dumps(dict(payload), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise _refused("payload", str(error)) from None


def _span(field: str, value: Span | None) -> timedelta | None:
    try:
        return None if value is None else as_span(field, value)
    except ValueError:
        raise _refused(field, f"{value} is no number of seconds") from None


def _refused(field: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError([FieldViolation(field=field, description=why)])
