from hypothesis import given
from hypothesis import strategies as st

from leaseq.domain.error_text import clean, clean_error
from leaseq.domain.limits import (
    MAX_ERROR_BYTES,
    MAX_ERROR_MESSAGE_BYTES,
    MAX_ERROR_TYPE_BYTES,
)


def test_short_clean_texts_stay_as_they_are() -> None:
    assert clean_error("ValueError", "no é", "line 1\nline 2") == (
        "ValueError",
        "no é",
        "line 1\nline 2",
    )


def test_nul_and_surrogates_are_replaced() -> None:
    assert clean("a\x00b\ud800c\udfffd") == "a\ufffdb\ufffdc\ufffdd"


def test_every_part_is_cleaned() -> None:
    assert clean_error("T\x00", "m\x00", "t\x00") == ("T\ufffd", "m\ufffd", "t\ufffd")


def test_a_missing_type_is_called_error() -> None:
    assert clean_error("", "boom", "")[0] == "Error"


def test_a_long_message_keeps_its_beginning() -> None:
    _, message, _ = clean_error("E", "first " + "x" * MAX_ERROR_MESSAGE_BYTES, "")

    assert message.startswith("first x")
    assert message.endswith(" […]")
    assert len(message.encode()) == MAX_ERROR_MESSAGE_BYTES


def test_a_message_of_just_the_limit_is_whole() -> None:
    longest = "x" * MAX_ERROR_MESSAGE_BYTES

    assert clean_error("E", longest, "")[1] == longest


def test_a_long_traceback_keeps_its_end() -> None:
    _, _, traceback = clean_error("E", "m", "x" * MAX_ERROR_BYTES + " the cause")

    assert traceback.startswith(" […]x")
    assert traceback.endswith("x the cause")
    assert len(traceback.encode()) == MAX_ERROR_BYTES - 2


def test_a_traceback_that_fills_the_room_is_whole() -> None:
    longest = "x" * (MAX_ERROR_BYTES - 2)

    assert clean_error("E", "m", longest)[2] == longest


texts = st.text() | st.integers(0, 20_000).map(lambda n: "é" * n)


@given(type_=texts, message=texts, traceback=texts)
def test_no_text_is_too_long_or_cannot_be_stored(type_: str, message: str, traceback: str) -> None:
    parts = clean_error(type_, message, traceback)

    sizes = [len(part.encode()) for part in parts]
    assert sizes[0] <= MAX_ERROR_TYPE_BYTES
    assert sum(sizes) <= MAX_ERROR_BYTES
    assert not any("\x00" in part for part in parts)
