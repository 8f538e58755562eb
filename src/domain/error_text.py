"""Error text made storable: what a worker reports is never refused for its content."""

from __future__ import annotations

import re
from typing import Final

from .limits import MAX_ERROR_BYTES, MAX_ERROR_MESSAGE_BYTES, MAX_ERROR_TYPE_BYTES

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
_CUT: Final = " […]"
_CUT_BYTES: Final = len(_CUT.encode())


def clean_error(type_: str, message: str, traceback: str) -> tuple[str, str, str]:
    """
    Return the three texts without NUL and surrogates, together at most 16 KiB of UTF-8.

    A traceback that is too long keeps its end, where the cause stands.
    """
    type_ = _head(clean(type_), MAX_ERROR_TYPE_BYTES) or "Error"
    message = _head(clean(message), MAX_ERROR_MESSAGE_BYTES)
    room = MAX_ERROR_BYTES - len(type_.encode()) - len(message.encode())
    return type_, message, _tail(clean(traceback), room)


def clean(text: str) -> str:
    """Return `text` with each NUL and each lone surrogate replaced by U+FFFD."""
    return _UNSTORABLE.sub("\ufffd", text)


def _head(text: str, limit: int) -> str:
    data = text.encode()
    if len(data) <= limit:
        return text
    return data[: limit - _CUT_BYTES].decode(errors="ignore") + _CUT


def _tail(text: str, limit: int) -> str:
    data = text.encode()
    if len(data) <= limit:
        return text
    return _CUT + data[len(data) - limit + _CUT_BYTES :].decode(errors="ignore")
