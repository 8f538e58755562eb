from __future__ import annotations

import pytest

from leaseq.entrypoints.printable import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text", "plain text"),
        ("größe 大きさ 🙂", "größe 大きさ 🙂"),
        ("[red]not red[/red]", "[red]not red[/red]"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("two\nlines\r\tand\0", r"two\nlines\r\tand\x00"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb\u2066c", r"a\u202eb\u2066c"),
        ("a\u2028b", r"a\u2028b"),
        ("\ud800", r"\ud800"),
    ],
)
def test_only_what_could_move_a_cursor_is_spelt_out(text: str, shown: str) -> None:
    assert printable(text) == shown
