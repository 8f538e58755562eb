import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.domain.ids import TaskType
from leaseq.domain.json_text import RefusedJsonError, fingerprint, normalise, normalise_object
from leaseq.domain.limits import MAX_JSON_BYTES

ACCEPTED = [
    ("{}", "{}"),
    (' { "a" : 1 } ', '{"a": 1}'),
    ('{"bb": 1, "a": 2, "c": 3}', '{"a": 2, "c": 3, "bb": 1}'),
    ('{"a": 1, "a": 2}', '{"a": 2}'),
    ('{"\u00e9": 1, "z": 2, "aa": 3}', '{"z": 2, "aa": 3, "\u00e9": 1}'),
    ("[1,2,[]]", "[1, 2, []]"),
    ("[null,true,false]", "[null, true, false]"),
    ('"\\u00e9\\ud83d\\ude00"', '"\u00e9\U0001f600"'),
    ('"\\b\\f\\n\\r\\t\\u0001\\u001f\\/\\"\\\\"', '"\\b\\f\\n\\r\\t\\u0001\\u001f/\\"\\\\"'),
    ('"\\u007f\\u2028"', '"\x7f\u2028"'),
    ("-0", "0"),
    ("9007199254740993", "9007199254740993"),
    ("-9223372036854775808", "-9223372036854775808"),
    ("1" * 1000, "1" * 1000),
    ("-" + "1" * 1000, "-" + "1" * 1000),
    ("0.10", "0.10"),
    ("-0.0", "0.0"),
    ("0e5", "0.0"),
    ("0e99999999", "0.0"),
    ("1e2", "100.0"),
    ("1.50e1", "15.0"),
    ("1.5E-2", "0.015"),
    ("1e308", "1" + "0" * 308 + ".0"),
    ("5e-324", "0." + "0" * 323 + "5"),
    ("[" * 64 + "]" * 64, "[" * 64 + "]" * 64),
    ('{"a": ' * 64 + "1" + "}" * 64, '{"a": ' * 64 + "1" + "}" * 64),
]


@pytest.mark.parametrize(("text", "kept"), ACCEPTED, ids=lambda text: text[:30])
def test_keeps_a_value_in_its_one_spelling(text: str, kept: str) -> None:
    assert normalise(text) == kept


REFUSED = [
    ("", "is not JSON"),
    ("{", "is not JSON"),
    ("\ufeff{}", "is not JSON"),
    ("{} x", "is not JSON"),
    ("{'a': 1}", "is not JSON"),
    ("01", "is not JSON"),
    ("NaN", "holds NaN"),
    ("[-Infinity]", "holds -Infinity"),
    ('"\\u0000"', "holds the character NUL"),
    ('"\\ud800"', "holds a lone surrogate"),
    ('"\\udc00\\ud800"', "holds a lone surrogate"),
    ('{"\\udfff": 1}', "holds a lone surrogate"),
    ("1e309", "beyond the range of a double"),
    ("-1e400", "beyond the range of a double"),
    ("1e999999999999999999999999", "beyond the range of a double"),
    ("1e-400", "too close to zero"),
    ("1e-999999999999999999999999", "an exponent beyond reason"),
    ("0e-99999", "more than 1000 digits"),
    ("1" * 1001, "more than 1000 digits"),
    ("0." + "1" * 1001, "more than 1000 digits"),
    ("[" * 65 + "]" * 65, "nested deeper than 64"),
    ('{"a": ' * 65 + "1" + "}" * 65, "nested deeper than 64"),
    ('{"a": [' * 32 + "[1]" + "]}" * 32, "nested deeper than 64"),
    ("[" * 100_000 + "]" * 100_000, "nested deeper than 64"),
    ('{"a":' * 100_000, "nested deeper than 64"),
    ("[" + ",".join(["1e308"] * 20_000) + "]", "larger than 1 MiB as kept"),
    ('"' + "x" * MAX_JSON_BYTES + '"', "larger than 1 MiB"),
    ('"' + "\u00e9" * (MAX_JSON_BYTES // 2) + '"', "larger than 1 MiB as kept"),
]


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=lambda text: text[:30])
def test_refuses_what_it_cannot_keep(text: str, why: str) -> None:
    with pytest.raises(RefusedJsonError, match=why):
        normalise(text)


def test_accepts_the_largest_text_and_not_one_byte_more() -> None:
    largest = '"' + "x" * (MAX_JSON_BYTES - 2) + '"'

    assert normalise(largest) == largest
    with pytest.raises(RefusedJsonError):
        normalise(largest + " ")


def test_a_number_may_have_a_thousand_digits_after_its_point() -> None:
    text = "0." + "1" * 1000

    assert normalise(text) == text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('{"a": {"b": [1, "\\u0000"]}}', ".a.b[1]"),
        ('{"a\\u0000b": 1}', ".a\ufffdb"),
        ('[[["\\u0000"]]]', "[0][0][0]"),
    ],
)
def test_says_where_the_fault_is(text: str, path: str) -> None:
    with pytest.raises(RefusedJsonError) as refused:
        normalise(text)

    assert refused.value.path == path
    assert str(refused.value).startswith(f"at {path}: ")


def test_a_long_key_is_cut() -> None:
    with pytest.raises(RefusedJsonError) as refused:
        normalise('{"' + "k" * 60 + '": "\\u0000"}')

    assert refused.value.path == "." + "k" * 50


def test_a_path_is_cut() -> None:
    with pytest.raises(RefusedJsonError) as refused:
        normalise('{"' + "k" * 49 + '": ' + '{"x": ' * 63 + '"\\u0000"' + "}" * 64)

    assert len(refused.value.path) == 100


@pytest.mark.parametrize("text", ["[1]", "3", '"{}"', "null", "true"])
def test_a_payload_must_be_an_object(text: str) -> None:
    with pytest.raises(RefusedJsonError, match="must be a JSON object"):
        normalise_object(text)


def test_an_object_is_a_payload() -> None:
    assert normalise_object('{"a":1}') == '{"a": 1}'


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), inner
        )
    ),
    max_leaves=20,
)


@given(value=json_values)
def test_means_the_same_afterwards(value: object) -> None:
    normal = normalise(json.dumps(value))

    assert json.loads(normal) == value
    assert normalise(normal) == normal


@given(value=st.dictionaries(st.text("abc\u00e9"), st.integers()))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    backwards = dict(reversed(value.items()))

    assert normalise(json.dumps(value)) == normalise(json.dumps(backwards))


def test_fingerprints_tell_types_and_payloads_apart() -> None:
    payload = normalise('{"a": 1}')

    one = fingerprint(TaskType("t"), payload)

    assert len(one) == 64
    assert one == fingerprint(TaskType("t"), normalise('{"a":1}'))
    assert one != fingerprint(TaskType("u"), payload)
    assert one != fingerprint(TaskType("t"), normalise('{"a": 2}'))
