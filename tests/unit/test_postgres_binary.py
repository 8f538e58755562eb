from __future__ import annotations

from datetime import UTC, datetime
from struct import pack

import pytest

from leaseq.adapters.postgres.binary import (
    UNREADABLE_MOMENT,
    bigint_array,
    moment,
    text_array,
    timestamptz_array,
)
from leaseq.domain.lease import Lease
from leaseq.testing import MICROSECOND, NOON, a_lease

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def test_an_array_says_its_type_its_length_and_each_value() -> None:
    assert text_array(["a", "é"]) == (
        pack("!iiIii", 1, 0, 25, 2, 1) + pack("!i", 1) + b"a" + pack("!i", 2) + b"\xc3\xa9"
    )
    assert bigint_array([1, -2]) == pack("!iiIiiiqiq", 1, 0, 20, 2, 1, 8, 1, 8, -2)
    assert timestamptz_array([EPOCH + MICROSECOND]) == pack("!iiIiiiq", 1, 0, 1184, 1, 1, 8, 1)


def test_an_array_says_what_is_missing() -> None:
    assert text_array([None, ""]) == pack("!iiIiiii", 1, 1, 25, 2, 1, -1, 0)
    assert bigint_array([None, 7]) == pack("!iiIiiiiq", 1, 1, 20, 2, 1, -1, 8, 7)


def test_an_empty_array_has_no_dimension_and_keeps_its_type() -> None:
    assert text_array([]) == pack("!iiI", 0, 0, 25)
    assert bigint_array([]) == pack("!iiI", 0, 0, 20)
    assert timestamptz_array([]) == pack("!iiI", 0, 0, 1184)


def test_text_with_a_lone_surrogate_is_refused() -> None:
    with pytest.raises(UnicodeEncodeError):
        text_array(["\ud800"])


@pytest.mark.parametrize(
    "written",
    [
        NOON,
        NOON + MICROSECOND,
        EPOCH,
        EPOCH - MICROSECOND,
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime.max.replace(tzinfo=UTC),
        datetime.min.replace(tzinfo=UTC),
    ],
    ids=str,
)
def test_a_moment_is_read_as_it_was_written(written: datetime) -> None:
    data = timestamptz_array([written])[-8:]

    read = moment(data)

    assert read == written
    assert read.tzinfo is UTC


@pytest.mark.parametrize(
    "microseconds",
    [
        2**63 - 1,
        -(2**63),
        (datetime.max.replace(tzinfo=UTC) - EPOCH) // MICROSECOND + 1,
        (datetime.min.replace(tzinfo=UTC) - EPOCH) // MICROSECOND - 1,
    ],
    ids=["infinity", "-infinity", "the year 10000", "before Christ"],
)
def test_what_no_datetime_can_say_is_read_as_a_moment_that_no_task_takes(
    microseconds: int,
) -> None:
    read = moment(pack("!q", microseconds))

    assert read is UNREADABLE_MOMENT
    with pytest.raises(ValueError, match="UTC"):
        Lease(token=a_lease().token, holder=a_lease().holder, expires_at=read)
