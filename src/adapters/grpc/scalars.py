"""
Times, numbers and texts, between the domain's types and those of the wire.

Reading is total: what no validator may accept is read as a value that every validator
refuses, so that a strange message costs its sender a refusal and never an exception.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from ...domain.errors import FieldViolation, InvalidArgumentError, StorageError
from ...domain.task import Status
from .generated import queue_pb2 as pb

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime.max.replace(tzinfo=UTC)
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_NO_TIME: Final = timedelta(0)
_SECONDS_PER_DAY: Final = 86_400
_NANOS_PER_SECOND: Final = 10**9
_NANOS_PER_MICROSECOND: Final = 1000
_INT32_MIN: Final = -(2**31)
_INT32_MAX: Final = 2**31 - 1
_SHORT: Final = 200
"""Characters; twice of what a name or a token may have, and an id is shorter."""


def write_span(span: timedelta) -> Duration:
    """Return `span`, exactly; seconds and nanos have the same sign."""
    size = abs(span)
    # Arithmetic on timedeltas takes several times as long.
    seconds = size.days * _SECONDS_PER_DAY + size.seconds
    nanos = size.microseconds * _NANOS_PER_MICROSECOND
    if span < _NO_TIME:
        return Duration(seconds=-seconds, nanos=-nanos)
    return Duration(seconds=seconds, nanos=nanos)


def read_span(message: Duration) -> timedelta:
    """
    Return the duration, cut down to microseconds.

    A malformed one reads as the most negative span, one out of range as the nearest span.
    """
    seconds, nanos = message.seconds, message.nanos
    malformed = abs(nanos) >= _NANOS_PER_SECOND or seconds < 0 < nanos or nanos < 0 < seconds
    if malformed:
        return timedelta.min
    try:
        return timedelta(seconds=seconds, microseconds=nanos // _NANOS_PER_MICROSECOND)
    except OverflowError:
        return timedelta.max if seconds > 0 else timedelta.min


def write_moment(moment: datetime) -> Timestamp:
    """Return an aware `moment`, exactly."""
    since = moment - _EPOCH
    # Only the days of a timedelta are ever negative, as is right for the seconds here.
    return Timestamp(
        seconds=since.days * _SECONDS_PER_DAY + since.seconds,
        nanos=since.microseconds * _NANOS_PER_MICROSECOND,
    )


def read_moment(message: Timestamp) -> datetime:
    """
    Return the timestamp in UTC, cut down to microseconds.

    A malformed one reads as the last moment there is, one out of range as the nearest.
    """
    seconds, nanos = message.seconds, message.nanos
    if not 0 <= nanos < _NANOS_PER_SECOND:
        return _LATEST
    try:
        span = timedelta(seconds=seconds, microseconds=nanos // _NANOS_PER_MICROSECOND)
        return _EPOCH + span
    except OverflowError:
        return _LATEST if seconds > 0 else _EARLIEST


def int32(number: int) -> int:
    """Return `number`, or the nearest that fits; no validator accepts either end."""
    return max(_INT32_MIN, min(number, _INT32_MAX))


def short_text(text: str) -> str:
    """
    Return a name, id or token as it can be sent.

    What UTF-8 cannot spell becomes "?", which none of them holds, and what is longer
    than any of them is cut; so the server's verdict on it stays what it was.
    """
    if len(text) <= _SHORT and text.isascii():
        return text
    return text[:_SHORT].encode(errors="replace").decode()


def require_text(**texts: str) -> None:
    """
    Check that each text can be sent; `texts` are named as the fields they go into.

    Raises:
        InvalidArgumentError: a text holds a lone surrogate, which UTF-8 cannot spell.
    """
    violations = [
        FieldViolation(field=field, description="must not hold a lone surrogate")
        for field, text in texts.items()
        if not _sendable(text)
    ]
    if violations:
        raise InvalidArgumentError(violations)


def _sendable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def write_status(status: Status) -> pb.TaskStatus:
    """Return `status` as the wire numbers it."""
    return _WRITTEN[status]


def read_asked_status(field: str, number: int) -> Status:
    """
    Return the status that a request names.

    Raises:
        InvalidArgumentError: none has this number.
    """
    status = _READ.get(number)
    if status is None:
        fault = FieldViolation(field=field, description=f"{number} is no status of a task")
        raise InvalidArgumentError([fault])
    return status


def read_told_status(number: int) -> Status:
    """
    Return the status that a reply tells.

    Raises:
        StorageError: none that this version knows has this number.
    """
    status = _READ.get(number)
    if status is None:
        raise StorageError(f"the server tells of a status that is unknown here: {number}")
    return status


_WRITTEN: Final = {
    Status.QUEUED: pb.TASK_STATUS_QUEUED,
    Status.LEASED: pb.TASK_STATUS_LEASED,
    Status.SUCCEEDED: pb.TASK_STATUS_SUCCEEDED,
    Status.FAILED: pb.TASK_STATUS_FAILED,
    Status.DEAD: pb.TASK_STATUS_DEAD,
    Status.CANCELLED: pb.TASK_STATUS_CANCELLED,
}
_READ: Final[dict[int, Status]] = {number: status for status, number in _WRITTEN.items()}
