"""From what Python programs have at hand to the terms of a list of tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypedDict, Unpack

from ..domain.errors import FieldViolation, InvalidArgumentError
from ..domain.requests import PageRequest, TaskFilter
from ..domain.task import Status
from .keywords import refuse_unknown


class ListOptions(TypedDict, total=False):
    """Which tasks to list; every part that is given narrows."""

    queue: str
    type: str
    statuses: Iterable[str]
    """Of `Status`, or as they are spelt; left out: all."""

    idempotency_key: str
    size: int
    """Of a page: 1 to 1000, 100 if left out. A page may be shorter, and not be the last."""

    cursor: str
    """`next_cursor` of the page before."""

    with_payload: bool
    """Also read payloads and results."""


def task_list(**options: Unpack[ListOptions]) -> tuple[TaskFilter, PageRequest]:
    """
    Return the filter and the page that these arguments ask for.

    Raises:
        InvalidArgumentError: there is no such status.
        TypeError: there is no such option.
    """
    refuse_unknown(options, ListOptions)
    wanted = TaskFilter(
        queue=options.get("queue", ""),
        type=options.get("type", ""),
        statuses=tuple(parse_status(status) for status in options.get("statuses", ())),
        idempotency_key=options.get("idempotency_key", ""),
    )
    page = PageRequest(
        size=options.get("size", 100),
        cursor=options.get("cursor", ""),
        with_payload=options.get("with_payload", False),
    )
    return wanted, page


def parse_status(text: str) -> Status:
    """
    Return the status that `text` spells.

    Raises:
        InvalidArgumentError: there is none such.
    """
    try:
        return Status(text)
    except ValueError:
        why = f"{text!r} is none of {', '.join(Status)}"
        raise InvalidArgumentError([FieldViolation(field="statuses", description=why)]) from None
