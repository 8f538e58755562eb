"""
What producers send and get, between JSON and values.

Reading judges only what a value cannot hold: another type, an unknown field, a field that
comes twice. What is out of bounds is for validation; all faults are told together.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any, Final

import attrs

from ...domain import validation
from ...domain.error_text import clean
from ...domain.errors import FieldViolation, InvalidArgumentError, TaskQueueError
from ...domain.ids import TaskId
from ...domain.requests import NewTask
from ...domain.views import Enqueued
from .json_reader import JsonNumber, JsonReader
from .status import verdict_on

_MOMENT: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?"
    r"(?:[Zz]|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
_EARLIEST: Final = datetime.min.replace(tzinfo=UTC)
_BEYOND_BOUNDS: Final = Decimal(10**9)
"""No number of seconds, tries or priority may be so large."""
_MOST_OF_A_NAME: Final = 50
_MOST_FAULTS: Final = 20
"""Told of one object."""

_LEAP_SECOND: Final = 60


class _FaultError(Exception):
    """A value is of another type; `str()` says what it must be."""


def read_new_task(text: str, *, now: datetime, idempotency_key: str | None = None) -> NewTask:
    """
    Return what a body asks to enqueue.

    Args:
        idempotency_key: what the header of that name says.

    Raises:
        InvalidArgumentError: naming every fault, in what has been read also those that
            validation finds.
    """
    with _Body(text) as reader:
        new = _read_task(reader, now=now, idempotency_key=idempotency_key)
        reader.end()
    if isinstance(new, InvalidArgumentError):
        raise new
    return new


def read_batch(text: str, *, now: datetime) -> list[NewTask | InvalidArgumentError]:
    """
    Return what each item of a body asks to enqueue, or why that cannot be told.

    Raises:
        InvalidArgumentError: the body has faults outside of its items.
    """
    tasks: list[NewTask | InvalidArgumentError] = []
    faults = _Faults()
    with _Body(text) as reader:
        _require_object(reader)
        for name in reader.members():
            if not faults.is_news(name, ("tasks",)):
                reader.value()
            elif reader.at_array:
                tasks = [_read_task(reader, now=now) for _ in reader.items()]
            else:
                reader.value()
                faults.add("tasks", "must be an array")
        reader.end()
    faults.require("tasks", "must be given", holds="tasks" in faults.seen)
    if faults.any:
        raise faults.refusal()
    return tasks


def write_enqueued(enqueued: Enqueued) -> dict[str, Any]:
    """Return the answer to an enqueue."""
    task = enqueued.task
    return {
        "task_id": task.id,
        "created": enqueued.created,
        "queue": task.queue,
        "type": task.type,
        "status": task.status.value,
        "run_after": task.run_after.isoformat(),
    }


def write_result(outcome: Enqueued | TaskQueueError) -> dict[str, Any]:
    """Return the result of one item of a batch."""
    if isinstance(outcome, TaskQueueError):
        return {"refused": verdict_on(outcome).problem}
    return {"ok": write_enqueued(outcome)}


class _Body:
    """A `with` block in which a text that is not JSON is a violation."""

    def __init__(self, text: str) -> None:
        self._reader = JsonReader(text)

    def __enter__(self) -> JsonReader:
        return self._reader

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, json.JSONDecodeError):
            raise _violation("body", f"is not JSON: {error.msg} at character {error.pos}") from None


@attrs.define
class _Faults:
    """Collects what is wrong with an object, and which of its fields were seen."""

    seen: set[str] = attrs.field(factory=set)
    _violations: list[FieldViolation] = attrs.field(factory=list)
    _untold: int = 0

    @property
    def any(self) -> bool:
        return bool(self._violations)

    def add(self, field: str, description: str) -> None:
        if len(self._violations) < _MOST_FAULTS:
            self._violations.append(FieldViolation(field=field, description=description))
        else:
            self._untold += 1

    def require(self, field: str, description: str, *, holds: bool) -> None:
        if not holds:
            self.add(field, description)

    def is_news(self, name: str, known: tuple[str, ...], *, within: str = "") -> bool:
        """Return whether the field `name` is known and comes for the first time, or add a fault."""
        field = f"{within}{clean(name[:_MOST_OF_A_NAME])}"
        if name not in known:
            # Nearness takes its time, which nobody may have a million times.
            told = not self._untold and len(self._violations) < _MOST_FAULTS
            near = get_close_matches(name[:_MOST_OF_A_NAME], known, n=1) if told else ()
            hint = f"; did you mean {within}{near[0]}?" if near else ""
            self.add(field, f"is no field of this object{hint}")
        elif field in self.seen:
            self.add(field, "is given twice")
        else:
            self.seen.add(field)
            return True
        return False

    def refusal(self, more: Iterable[FieldViolation] = ()) -> InvalidArgumentError:
        """Return all faults as one error, with `more` of fields that have none yet."""
        named = {violation.field.partition(".")[0] for violation in self._violations}
        others = [each for each in more if each.field.partition(".")[0] not in named]
        untold = (
            [FieldViolation(field="body", description=f"has {self._untold} more faults")]
            if self._untold
            else []
        )
        return InvalidArgumentError([*self._violations, *others, *untold])


def _read_task(
    reader: JsonReader, *, now: datetime, idempotency_key: str | None = None
) -> NewTask | InvalidArgumentError:
    if not reader.at_object:
        reader.value()
        return _violation("body", "must be a JSON object")
    faults = _Faults()
    values: dict[str, Any] = {}
    for name in reader.members():
        if not faults.is_news(name, _FIELDS):
            reader.value()
        elif name == "payload":
            values[name] = reader.text()
        elif name == "retry":
            values |= _read_retry(reader, faults)
        else:
            _keep(values, name, name, reader.value(), faults)
    if idempotency_key is not None:
        given = values.setdefault("idempotency_key", idempotency_key)
        faults.require(
            "idempotency_key",
            "differs from the header Idempotency-Key",
            holds=given == idempotency_key,
        )
    new = NewTask(**{"type": "", **values})
    return _refusal(new, faults, now=now) if faults.any else new


def _read_retry(reader: JsonReader, faults: _Faults) -> dict[str, Any]:
    if not reader.at_object:
        reader.value()
        faults.add("retry", "must be an object")
        return {}
    values: dict[str, Any] = {}
    for name in reader.members():
        is_news = faults.is_news(name, ("base", "cap"), within="retry.")
        value = reader.value()
        if is_news:
            _keep(values, f"retry_{name}", f"retry.{name}", value, faults)
    return values


def _keep(values: dict[str, Any], name: str, field: str, value: object, faults: _Faults) -> None:
    try:
        values[name] = _READERS[name](value)
    except _FaultError as fault:
        faults.add(field, str(fault))


def _refusal(new: NewTask, faults: _Faults, *, now: datetime) -> InvalidArgumentError:
    """Return what is wrong here, and what validation finds in what could be read."""
    try:
        validation.make_task(new, task_id=TaskId(""), now=now)
    except InvalidArgumentError as error:
        return faults.refusal(error.violations)
    return faults.refusal()


def _require_object(reader: JsonReader) -> None:
    if not reader.at_object:
        reader.value()
        raise _violation("body", "must be a JSON object")


def _violation(field: str, description: str) -> InvalidArgumentError:
    return InvalidArgumentError([FieldViolation(field=field, description=description)])


def _text(value: object) -> str:
    if isinstance(value, str) and not isinstance(value, JsonNumber):
        return value
    raise _FaultError("must be a string")


def _switch(value: object) -> bool:
    if isinstance(value, bool):
        return value
    raise _FaultError("must be true or false")


def _number(value: object, words: str) -> Decimal:
    if not isinstance(value, JsonNumber):
        raise _FaultError(words)
    try:
        number = Decimal(value)
    except InvalidOperation:  # an exponent beyond reason
        number = Decimal("Infinity").copy_sign(Decimal(value.partition("e")[0].partition("E")[0]))
    # Arithmetic on what is beyond every bound could take for ever; comparing does not.
    return max(-_BEYOND_BOUNDS, min(number, _BEYOND_BOUNDS))


def _whole(value: object) -> int:
    number = _number(value, "must be a whole number")
    if number != number.to_integral_value():
        raise _FaultError("must be a whole number")
    return int(number)


def _span(value: object) -> timedelta:
    number = _number(value, "must be a number of seconds")
    # Cut down to microseconds, as durations are on the wire.
    return timedelta(microseconds=int((number * 1_000_000).to_integral_value("ROUND_FLOOR")))


def _moment(value: object) -> datetime:
    found = _MOMENT.fullmatch(_text(value))
    if found is None:
        raise _FaultError("must be a date and time of RFC 3339, such as 2030-01-31T12:00:00Z")
    year, month, day, hour, minute, second = (int(part) for part in found.groups()[:6])
    fraction, sign, hours, minutes = found.groups()[6:]
    leap = second == _LEAP_SECOND
    try:
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        if not year:
            return _EARLIEST  # a year that Python has not; the past in any case
        micro = int((fraction or "0").ljust(6, "0")[:6])
        # Python knows no leap seconds: one counts as the first of the next minute.
        moment = datetime(year, month, day, hour, minute, second - leap, micro, zone)
        return moment + timedelta(seconds=leap)
    except (ValueError, OverflowError) as error:
        raise _FaultError(f"is no date and time: {error}") from None


_READERS: Final[dict[str, Callable[[object], object]]] = {
    "queue": _text,
    "type": _text,
    "idempotency_key": _text,
    "task_id": _text,
    "allow_different_payload": _switch,
    "priority": _whole,
    "max_attempts": _whole,
    "delay": _span,
    "run_after": _moment,
    "retry_base": _span,
    "retry_cap": _span,
}
_FIELDS: Final = (
    "type",
    "payload",
    "queue",
    "priority",
    "delay",
    "run_after",
    "max_attempts",
    "retry",
    "idempotency_key",
    "allow_different_payload",
    "task_id",
)
