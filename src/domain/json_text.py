"""
JSON as text: what is accepted, and the one spelling in which it is kept.

The spelling is one that PostgreSQL's `jsonb` gives back as it was: `", "` and `": "`
between parts, no exponents, the last of equal keys, keys by length and then by bytes.
So a text is the same in every storage, its size is known before it is stored, and
texts that differ only in spacing, escapes or the order of keys become one.

Source: RFC 8259; PostgreSQL manual, "JSON Types".
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from json.encoder import encode_basestring
from typing import Final

from .error_text import clean
from .ids import JsonText, TaskType
from .limits import MAX_JSON_BYTES, MAX_JSON_DEPTH, MAX_NUMBER_DIGITS

EMPTY_OBJECT: Final = JsonText("{}")
_MAX_PATH: Final = 100


class RefusedJsonError(ValueError):
    """The text is not JSON that leaseq keeps. `path` says where (`.a[2]`; empty: the whole)."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path[:_MAX_PATH]
        self.why = why
        super().__init__(f"at {path}: {why}" if path else why)


def normalise_object(text: str) -> JsonText:
    """
    Return the JSON object `text` in the spelling in which it is kept.

    Raises:
        RefusedJsonError: as for `normalise`, and if it is not an object.
    """
    normal = normalise(text)
    if not normal.startswith("{"):
        raise RefusedJsonError("", "must be a JSON object")
    return normal


def normalise(text: str) -> JsonText:
    """
    Return any JSON value `text` in the spelling in which it is kept.

    Raises:
        RefusedJsonError: it is not JSON; it is nested deeper than 64; it holds NUL, a
            lone surrogate, or a number that is neither a finite double nor an
            integer of up to 1,000 digits; it is larger than 1 MiB as kept.
    """
    if len(text) > MAX_JSON_BYTES:
        raise RefusedJsonError("", "is larger than 1 MiB")
    try:
        value = _decoder(text)
    except RecursionError:
        raise RefusedJsonError("", f"is nested deeper than {MAX_JSON_DEPTH}") from None
    except json.JSONDecodeError as error:
        why = f"is not JSON: {error.msg} at character {error.pos}"
        raise RefusedJsonError("", why) from None
    normal = _spelt(value, MAX_JSON_DEPTH)
    try:
        size = len(normal.encode())
    except UnicodeEncodeError:
        raise RefusedJsonError("", "holds a lone surrogate") from None
    if size > MAX_JSON_BYTES:
        raise RefusedJsonError("", "is larger than 1 MiB as kept (exponents are written out)")
    return JsonText(normal)


def fingerprint(type_: TaskType, payload: JsonText) -> str:
    """Return 64 hexadecimal digits, equal for equal type and payload (SHA-256)."""
    return hashlib.sha256(f"{type_}\n{payload}".encode()).hexdigest()


class _Number(str):
    """A number in the spelling in which it is kept."""

    __slots__ = ()


def _integer(text: str) -> _Number:
    if len(text.lstrip("-")) > MAX_NUMBER_DIGITS:
        raise RefusedJsonError("", f"holds an integer of more than {MAX_NUMBER_DIGITS} digits")
    return _Number("0" if text == "-0" else text)


def _fraction(text: str) -> _Number:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise RefusedJsonError("", "holds a number beyond the range of a double")
    try:
        exact = Decimal(text)
    except InvalidOperation:
        raise RefusedJsonError("", "holds an exponent beyond reason") from None
    if number == 0.0:
        if exact:
            raise RefusedJsonError("", "holds a number too close to zero for a double")
        exact = abs(exact)
    if exact.adjusted() < -MAX_NUMBER_DIGITS:
        raise RefusedJsonError("", f"holds a number of more than {MAX_NUMBER_DIGITS} digits")
    spelt = format(exact, "f")
    if "." not in spelt:
        spelt += ".0"  # so that a float stays one where integers are another type
    if len(spelt.lstrip("-")) > MAX_NUMBER_DIGITS + len("0."):
        raise RefusedJsonError("", f"holds a number of more than {MAX_NUMBER_DIGITS} digits")
    return _Number(spelt)


def _constant(text: str) -> object:
    raise RefusedJsonError("", f"holds {text}, which is not JSON")


_decoder: Final[Callable[[str], object]] = json.JSONDecoder(
    parse_int=_integer, parse_float=_fraction, parse_constant=_constant
).decode


def _spelt(value: object, depth_left: int) -> str:
    if type(value) is str:
        if "\x00" in value:
            raise RefusedJsonError("", "holds the character NUL (\\u0000)")
        return encode_basestring(value)
    if isinstance(value, _Number):
        return value
    if isinstance(value, dict | list):
        if not depth_left:
            raise RefusedJsonError("", f"is nested deeper than {MAX_JSON_DEPTH}")
        return (
            _spelt_object(value, depth_left - 1)
            if isinstance(value, dict)
            else _spelt_array(value, depth_left - 1)
        )
    return {None: "null", True: "true", False: "false"}[value]  # type: ignore[index]  # nothing else comes from the decoder


def _spelt_object(value: dict[str, object], depth_left: int) -> str:
    parts = []
    for key in sorted(value, key=_key_order):
        try:
            parts.append(f"{_spelt(key, depth_left)}: {_spelt(value[key], depth_left)}")
        except RefusedJsonError as error:
            raise RefusedJsonError(f".{clean(key[:50])}{error.path}", error.why) from None
    return "{" + ", ".join(parts) + "}"


def _spelt_array(value: list[object], depth_left: int) -> str:
    parts = []
    for index, item in enumerate(value):
        try:
            parts.append(_spelt(item, depth_left))
        except RefusedJsonError as error:
            raise RefusedJsonError(f"[{index}]{error.path}", error.why) from None
    return "[" + ", ".join(parts) + "]"


def _key_order(key: str) -> tuple[int, bytes]:
    data = key.encode(errors="surrogatepass")
    return len(data), data
