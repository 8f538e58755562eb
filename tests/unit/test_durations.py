from __future__ import annotations

from datetime import timedelta

import pytest

from leaseq.entrypoints.durations import parse_duration, shown


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("0", timedelta(0)),
        ("90", timedelta(seconds=90)),
        ("1.5", timedelta(seconds=1.5)),
        ("500ms", timedelta(milliseconds=500)),
        ("30s", timedelta(seconds=30)),
        ("5m", timedelta(minutes=5)),
        ("2h", timedelta(hours=2)),
        ("1d", timedelta(days=1)),
        (" 2 h ", timedelta(hours=2)),
    ],
)
def test_a_duration_is_read_as_people_write_it(text: str, span: timedelta) -> None:
    assert parse_duration(text) == span


@pytest.mark.parametrize("text", ["", "soon", "-1", "1e3", "nan", "inf", "5 minutes", "\u0661"])
def test_what_is_no_duration_is_refused_with_examples(text: str) -> None:
    with pytest.raises(ValueError, match="500ms, 90s, 5m, 2h, 1d"):
        parse_duration(text)


def test_a_duration_beyond_what_a_computer_counts_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("999999999999d")


@pytest.mark.parametrize("text", ["0s", "0.1s", "30s", "90s", "5m", "36h", "2d"])
def test_a_duration_is_shown_as_it_can_be_written(text: str) -> None:
    assert shown(parse_duration(text)) == text
