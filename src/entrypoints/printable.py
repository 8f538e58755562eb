"""Text of others made fit for a terminal and for one line of a log."""

from __future__ import annotations

import unicodedata
from typing import Final

_DANGEROUS: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Controls, bidirectional marks and other formats, surrogates, line and paragraph ends."""


def printable(text: str) -> str:
    r"""Return `text` with each character that could move a cursor spelt out (`\x1b`)."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        character.encode("unicode_escape").decode()
        if unicodedata.category(character) in _DANGEROUS
        else character
        for character in text
    )
