"""
The errors of a task as the JSON that storages keep.

An array of objects with the fields of `AttemptError`; times as ISO 8601, in UTC.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from ..domain.ids import WorkerId
from ..domain.task import AttemptError


def to_json(errors: Sequence[AttemptError]) -> str:
    """Return the errors, oldest first, as one array."""
    return json.dumps([_item(error) for error in errors], ensure_ascii=False) if errors else "[]"


def from_json(text: str) -> tuple[AttemptError, ...]:
    """
    Return the errors that `to_json` wrote.

    Raises:
        ValueError: it did not write this.
    """
    if text == "[]":
        return ()
    try:
        items = json.loads(text)
    except RecursionError:
        raise ValueError("errors are nested too deeply") from None
    if not isinstance(items, list):
        raise ValueError("errors are no array")  # noqa: TRY004  as for anything else unwritten
    return tuple(_error(item) for item in items)


def _item(error: AttemptError) -> dict[str, object]:
    return {
        "attempt": error.attempt,
        "worker_id": error.worker_id,
        "at": error.at.isoformat(),
        "type": error.type,
        "message": error.message,
        "traceback": error.traceback,
    }


def _error(item: object) -> AttemptError:
    match item:
        case {
            "attempt": int(attempt),
            "worker_id": str(worker_id),
            "at": str(at),
            "type": str(type_),
            "message": str(message),
            "traceback": str(traceback),
        }:
            return AttemptError(
                attempt=attempt,
                worker_id=WorkerId(worker_id),
                at=_instant(at),
                type=type_,
                message=message,
                traceback=traceback,
            )
        case _:
            raise ValueError("an error lacks a field, or has one of another type")


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    if instant.utcoffset() != timedelta(0):
        raise ValueError("the time of an error is not in UTC")
    return instant.replace(tzinfo=UTC)
