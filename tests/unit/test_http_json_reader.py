from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leaseq.adapters.http.json_reader import JsonNumber, JsonReader

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
BLANKS = st.text(" \t\r\n", max_size=3)


def members_of(text: str) -> dict[str, str]:
    reader = JsonReader(text)
    members = {key: reader.text() for key in reader.members()}
    reader.end()
    return members


@settings(deadline=None)
@given(st.dictionaries(st.text(), VALUES), BLANKS, st.booleans())
def test_each_member_is_had_as_it_was_spelt(
    value: dict[str, Any],
    blank: str,
    ascii_only: bool,  # noqa: FBT001
) -> None:
    spelt = {key: json.dumps(inner, ensure_ascii=ascii_only) for key, inner in value.items()}
    parts = [f"{blank}{json.dumps(key)}{blank}:{blank}{text}{blank}" for key, text in spelt.items()]

    assert members_of(f"{blank}{{{','.join(parts)}{blank}}}{blank}") == spelt


@settings(deadline=None)
@given(st.text('{}[]":,\\ \n1e-.aNtrue', max_size=20))
def test_what_python_does_not_read_is_not_read(text: str) -> None:
    try:
        expected = json.loads(text)
    except json.JSONDecodeError:
        expected = None
    if isinstance(expected, dict):
        assert members_of(text).keys() == expected.keys()
    else:
        with pytest.raises(json.JSONDecodeError):
            members_of(text)


@pytest.mark.parametrize("inside", ["[]", '["]", {"\\"": "}"}]', '{"a": []}'])
def test_the_end_of_deep_nesting_is_found(inside: str) -> None:
    deep = '{"a": [' * 50_000 + inside + "]}" * 50_000

    assert members_of(f'{{"deep": {deep}, "after": 1}}') == {"deep": deep, "after": "1"}


def test_numbers_keep_their_spelling() -> None:
    value = JsonReader("1.10e+05").value()

    assert isinstance(value, JsonNumber)
    assert value == "1.10e+05"


@settings(deadline=None)
@given(st.lists(VALUES, max_size=4))
def test_items_come_in_their_order(values: list[Any]) -> None:
    reader = JsonReader(json.dumps(values))

    items = [(index, json.loads(reader.text())) for index in reader.items()]
    reader.end()

    assert items == list(enumerate(values))
