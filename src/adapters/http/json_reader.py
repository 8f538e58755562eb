"""
JSON read from front to back, so that a part can be had as the very text that was sent.

What wraps a payload is understood here; the payload itself is not: it goes on as text to
the validator of every door, whose verdict on it is thus the same. Numbers are texts too.

Source: RFC 8259.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from json import JSONDecodeError
from typing import Final, NoReturn

_BLANK: Final = re.compile(r"[ \t\n\r]*")
_BRACKET: Final = re.compile(
    r'"[^"\\]*(?:\\.[^"\\]*)*"|(?P<open>[\[{])|(?P<close>[\]}])', re.DOTALL
)


class JsonNumber(str):
    """A number as it was spelt."""

    __slots__ = ()


class OtherJson:
    """A value that nothing here looks into: an object, an array, or no JSON at all (NaN)."""

    def __init__(self, _: object) -> None: ...


# Python's decoder takes NaN, of which the validator has its own word to say.
_decoder: Final = json.JSONDecoder(
    parse_int=JsonNumber,
    parse_float=JsonNumber,
    parse_constant=OtherJson,
    object_pairs_hook=OtherJson,
)


class JsonReader:
    """
    A place in a JSON text, which moves on with everything that is read.

    Every method may raise JSONDecodeError: the text is not JSON.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    @property
    def at_object(self) -> bool:
        """Whether an object begins here."""
        return self._peek() == "{"

    @property
    def at_array(self) -> bool:
        """Whether an array begins here."""
        return self._peek() == "["

    def members(self) -> Iterator[str]:
        """Read an object: yields each key, upon which its value is to be read."""
        self._take("{", "an object")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            if self._peek() != '"':
                self._refuse("Expecting property name enclosed in double quotes")
            key = self.value()
            self._take(":", "':' delimiter")
            yield str(key)
            if self._more("}"):
                continue
            return

    def items(self) -> Iterator[int]:
        """Read an array: yields each index, upon which the item is to be read."""
        self._take("[", "an array")
        if self._peek() == "]":
            self._at += 1
            return
        index = 0
        while True:
            yield index
            index += 1
            if not self._more("]"):
                return

    def value(self) -> str | bool | JsonNumber | OtherJson | list[object] | None:
        """Read any value."""
        self._peek()
        try:
            value, self._at = _decoder.raw_decode(self._text, self._at)
        except RecursionError:
            self._at = self._end_of_nesting()
            return OtherJson(None)
        return value  # type: ignore[no-any-return]  # nothing else comes from the decoder

    def text(self) -> str:
        """Read any value, and return it as it was spelt."""
        self._peek()
        begin = self._at
        self.value()
        return self._text[begin : self._at]

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self._peek():
            self._refuse("Extra data")

    def _peek(self) -> str:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._text[self._at : self._at + 1]

    def _take(self, character: str, words: str) -> None:
        if self._peek() != character:
            self._refuse(f"Expecting {words}")
        self._at += 1

    def _more(self, closing: str) -> bool:
        found = self._peek()
        if found not in {",", closing}:
            self._refuse("Expecting ',' delimiter")
        self._at += 1
        return found == ","

    def _end_of_nesting(self) -> int:
        # The decoder recurses and gives up; whether it is JSON in there nobody needs to know.
        depth = 0
        for found in _BRACKET.finditer(self._text, self._at):
            depth += bool(found["open"]) - bool(found["close"])
            if not depth:
                return found.end()
        raise JSONDecodeError("Expecting the end of what is nested", self._text, self._at)

    def _refuse(self, why: str) -> NoReturn:
        raise JSONDecodeError(why, self._text, self._at)
