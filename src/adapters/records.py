"""
Tasks and queues as plain data, for storages that keep documents.

A record holds texts, whole numbers, truth values, None, lists and dictionaries with texts
for keys: JSON and its like keep it. Times are ISO 8601 in UTC, spans are microseconds.
Reading checks everything, so that what was damaged is told as such and never half believed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final, TypeVar

from cattrs import Converter
from cattrs.errors import ForbiddenExtraKeysError
from cattrs.strategies import configure_tagged_union

from ..domain.storing import Queue
from ..domain.task import State, Task

T = TypeVar("T")

RECORD_FORMAT: Final = 1
"""
Rises when records change so that an older leaseq could not read them. A storage keeps it
beside its records, and refuses to open what has a higher one.
"""

_MICROSECOND: Final = timedelta(microseconds=1)
_DAMAGE: Final = (
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
    OverflowError,
    ForbiddenExtraKeysError,
)
"""What reading raises, wherever something else stands than what was written."""


def task_record(task: Task) -> dict[str, Any]:
    """Return every field of `task`, payload and result as the JSON texts that they are."""
    record: dict[str, Any] = _CONVERTER.unstructure(task, Task)
    return record


def task_of(record: object) -> Task:
    """
    Return the task that `task_record` made `record` of.

    Raises:
        ValueError: it made nothing like this. The record is unreadable, and says nothing of
            what stands in it.
    """
    return _structured(record, Task)


def queue_record(queue: Queue) -> dict[str, Any]:
    """Return every field of `queue`."""
    record: dict[str, Any] = _CONVERTER.unstructure(queue, Queue)
    return record


def queue_of(record: object) -> Queue:
    """
    Return the queue that `queue_record` made `record` of.

    Raises:
        ValueError: it made nothing like this.
    """
    return _structured(record, Queue)


def _structured(record: object, kind: type[T]) -> T:
    try:
        return _CONVERTER.structure(record, kind)
    except _DAMAGE:
        # Neither chained nor quoted: both would show what stands in the record.
        raise ValueError(f"this is no record of a {kind.__name__}") from None


def _exactly(kind: type[T], value: object, _: object) -> T:
    if type(value) is not kind:
        raise ValueError(f"{kind.__name__} is wanted here")
    return value


def _instant(text: object, _: object) -> datetime:
    instant = datetime.fromisoformat(_exactly(str, text, None))
    if instant.utcoffset() != timedelta(0):
        raise ValueError("the time is not in UTC")
    return instant.replace(tzinfo=UTC)


def _span(microseconds: object, _: object) -> timedelta:
    return _exactly(int, microseconds, None) * _MICROSECOND


def _converter() -> Converter:
    converter = Converter(forbid_extra_keys=True, detailed_validation=False)
    for kind in (str, int, bool):
        converter.register_structure_hook(kind, partial(_exactly, kind))
    converter.register_unstructure_hook(datetime, datetime.isoformat)
    converter.register_structure_hook(datetime, _instant)
    converter.register_unstructure_hook(timedelta, lambda span: span // _MICROSECOND)
    converter.register_structure_hook(timedelta, _span)
    configure_tagged_union(
        State, converter, tag_name="status", tag_generator=lambda kind: kind.__name__.lower()
    )
    return converter


_CONVERTER: Final = _converter()
