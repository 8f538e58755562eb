"""
How values travel: whole arrays out, moments in; in PostgreSQL's binary format.

An array has a type of its own here, the same for all values. The driver would choose by what is
inside (the smallest integer that fits; nothing at all where all is None), and each mix of types
would be one more statement to prepare.

Source: PostgreSQL source, `array_recv`, `timestamptz_recv` (the formats are not in the manual).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from struct import Struct, pack
from typing import Final

from psycopg import adapters
from psycopg.adapt import AdaptersMap, Buffer, Dumper, Loader
from psycopg.pq import Format

_EPOCH: Final = datetime(2000, 1, 1, tzinfo=UTC)
_LATEST: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)
_EARLIEST: Final = (datetime.min.replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)

UNREADABLE_MOMENT: Final = datetime.min  # noqa: DTZ901  no time zone, so that no task takes it
"""Read for what no `datetime` can say: infinity, and years beyond 9999."""

_TEXT: Final = 25
_BIGINT: Final = 20
_TIMESTAMPTZ: Final = 1184
_LENGTH: Final = Struct("!i")
_MICROSECONDS: Final = Struct("!q")
_NULL: Final = _LENGTH.pack(-1)
_EIGHT: Final = _LENGTH.pack(8)


class Texts(tuple[str | None, ...]):
    """A `text[]`."""

    __slots__ = ()


class Bigints(tuple[int | None, ...]):
    """A `bigint[]`."""

    __slots__ = ()


class Moments(tuple[datetime | None, ...]):
    """A `timestamptz[]`; each in `datetime.UTC`."""

    __slots__ = ()


def text_array(values: Sequence[str | None]) -> bytes:
    """
    Return a `text[]`.

    Raises:
        UnicodeEncodeError: a value holds a lone surrogate.
    """
    return _array(_TEXT, [None if value is None else value.encode() for value in values])


def bigint_array(values: Sequence[int | None]) -> bytes:
    """Return a `bigint[]`."""
    return _array_of_eights(_BIGINT, values)


def timestamptz_array(values: Sequence[datetime | None]) -> bytes:
    """Return a `timestamptz[]`."""
    microseconds = [None if value is None else _since_epoch(value) for value in values]
    return _array_of_eights(_TIMESTAMPTZ, microseconds)


def moment(data: Buffer) -> datetime:
    """Return the moment that a `timestamptz` says, or UNREADABLE_MOMENT. Never raises."""
    (microseconds,) = _MICROSECONDS.unpack(data)
    if _EARLIEST <= microseconds <= _LATEST:
        return _EPOCH + timedelta(microseconds=microseconds)
    return UNREADABLE_MOMENT


def _since_epoch(value: datetime) -> int:
    since = value - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _array(element: int, values: Sequence[bytes | None]) -> bytes:
    parts = [_header(element, len(values), has_null=None in values)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts += (_LENGTH.pack(len(value)), value)
    return b"".join(parts)


def _array_of_eights(element: int, values: Sequence[int | None]) -> bytes:
    has_null = None in values
    header = _header(element, len(values), has_null=has_null)
    if not has_null:
        eights: Iterable[int | None] = (part for value in values for part in (8, value))
        return header + pack("!" + "iq" * len(values), *eights)
    return header + b"".join(
        _NULL if value is None else _EIGHT + _MICROSECONDS.pack(value) for value in values
    )


def _header(element: int, length: int, *, has_null: bool) -> bytes:
    if not length:
        return pack("!iiI", 0, 0, element)
    return pack("!iiIii", 1, has_null, element, length, 1)


class _TextsDumper(Dumper):
    format = Format.BINARY
    oid = 1009

    def dump(self, obj: Texts) -> bytes:
        return text_array(obj)


class _BigintsDumper(Dumper):
    format = Format.BINARY
    oid = 1016

    def dump(self, obj: Bigints) -> bytes:
        return bigint_array(obj)


class _MomentsDumper(Dumper):
    format = Format.BINARY
    oid = 1185

    def dump(self, obj: Moments) -> bytes:
        return timestamptz_array(obj)


class _MomentLoader(Loader):
    """Reads UTC whatever the session's time zone, and one absurd moment without losing the rest."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime:
        return moment(data)


def adaptation() -> AdaptersMap:
    """Return what connections are to know of the types above."""
    known = AdaptersMap(adapters)
    known.register_dumper(Texts, _TextsDumper)
    known.register_dumper(Bigints, _BigintsDumper)
    known.register_dumper(Moments, _MomentsDumper)
    known.register_loader("timestamptz", _MomentLoader)
    return known
