from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from leaseq.entrypoints.durations import as_span, parse_duration, shown


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


@pytest.mark.parametrize(
    ("given", "span"),
    [
        (timedelta(minutes=5), timedelta(minutes=5)),
        (0, timedelta(0)),
        (-1.5, timedelta(seconds=-1.5)),
    ],
    ids=repr,
)
def test_a_program_gives_a_span_or_seconds(given: timedelta | float, span: timedelta) -> None:
    assert as_span("delay", given) == span


@pytest.mark.parametrize("given", [float("nan"), float("inf"), -float("inf"), 1e300], ids=repr)
def test_what_is_no_number_of_seconds_is_refused_by_name(given: float) -> None:
    with pytest.raises(ValueError, match="delay must be"):
        as_span("delay", given)


@pytest.mark.parametrize("given", [True, "5", None], ids=repr)
def test_what_is_neither_a_span_nor_a_number_is_refused_by_name(given: Any) -> None:
    with pytest.raises(TypeError, match="delay must be a timedelta or a number"):
        as_span("delay", given)
