from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.adapters.error_history import from_json, to_json
from leaseq.domain.ids import WorkerId
from leaseq.domain.task import AttemptError
from leaseq.testing import MICROSECOND, NOON, an_error

texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
errors = st.builds(
    AttemptError,
    attempt=st.integers(1, 1000),
    worker_id=texts.map(WorkerId),
    at=st.datetimes(min_value=datetime(1970, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    type=texts,
    message=texts,
    traceback=texts,
)


@given(st.lists(errors, max_size=3))
def test_errors_come_back_equal(history: list[AttemptError]) -> None:
    assert from_json(to_json(history)) == tuple(history)


def test_an_error_is_an_object_that_people_can_read() -> None:
    error = an_error("b\u00f6om", attempt=2, at=NOON + MICROSECOND, traceback="line 1")

    assert json.loads(to_json([error])) == [
        {
            "attempt": 2,
            "worker_id": "worker-1",
            "at": "2026-03-14T12:00:00.000001+00:00",
            "type": "ValueError",
            "message": "b\u00f6om",
            "traceback": "line 1",
        }
    ]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "{}",
        "[null]",
        "[{}]",
        "[" * 100_000,
        to_json([an_error()]).replace("1", '"1"'),
        to_json([an_error()]).replace("+00:00", ""),
        to_json([an_error()]).replace("+00:00", "+01:00"),
        to_json([an_error()]).replace("2026", "20260"),
    ],
    ids=[
        "nothing",
        "null",
        "an object",
        "an array of null",
        "an error without fields",
        "nested too deeply",
        "a number as a text",
        "a time of nowhere",
        "a time of elsewhere",
        "no time",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(text)
