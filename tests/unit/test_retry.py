from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.domain.retry import RetryPolicy

MICROSECOND = timedelta(microseconds=1)
ALMOST_ONE = 1 - 2**-53

# The default policy (2 s, 1 h): attempts ended, shortest wait, end of the open interval; seconds.
FIRST_TWENTY = [
    (1, 4, 6),
    (2, 8, 12),
    (3, 16, 24),
    (4, 32, 48),
    (5, 64, 96),
    (6, 128, 192),
    (7, 256, 384),
    (8, 512, 768),
    (9, 1024, 1536),
    (10, 2048, 3072),
    (11, 3600, 5400),
    (12, 3600, 5400),
    (13, 3600, 5400),
    (14, 3600, 5400),
    (15, 3600, 5400),
    (16, 3600, 5400),
    (17, 3600, 5400),
    (18, 3600, 5400),
    (19, 3600, 5400),
    (20, 3600, 5400),
]


@pytest.mark.parametrize(("attempts", "shortest", "end"), FIRST_TWENTY)
def test_waits_double_up_to_the_cap(attempts: int, shortest: int, end: int) -> None:
    policy = RetryPolicy()

    least = policy.delay(attempts, jitter=0.0)
    most = policy.delay(attempts, jitter=ALMOST_ONE)

    assert least == timedelta(seconds=shortest)
    assert timedelta(seconds=end) - timedelta(milliseconds=1) < most < timedelta(seconds=end)


def test_half_of_the_luck_adds_a_quarter() -> None:
    assert RetryPolicy().delay(1, jitter=0.5) == timedelta(seconds=5)


policies = st.tuples(
    st.timedeltas(timedelta(milliseconds=1), timedelta(days=1)),
    st.timedeltas(timedelta(milliseconds=1), timedelta(days=30)),
).map(lambda pair: RetryPolicy(base=pair[0], cap=max(pair)))


@given(
    policy=policies,
    attempts=st.integers(1, 100_000),
    jitter=st.floats(0, 1, exclude_max=True),
)
def test_every_wait_lies_between_its_floor_and_half_as_much_again(
    policy: RetryPolicy, attempts: int, jitter: float
) -> None:
    floor = policy.delay(attempts, jitter=0.0)

    wait = policy.delay(attempts, jitter=jitter)

    assert policy.base < floor <= policy.cap or floor == policy.cap
    assert floor <= wait
    assert 2 * wait < 3 * floor


@given(policy=policies, attempts=st.integers(1, 100_000))
def test_floors_never_fall_and_reach_the_cap(policy: RetryPolicy, attempts: int) -> None:
    assert policy.delay(attempts, jitter=0) <= policy.delay(attempts + 1, jitter=0)
    assert policy.delay(100_000, jitter=0) == policy.cap


def test_an_odd_number_of_microseconds_stays_below_half_as_much_again() -> None:
    policy = RetryPolicy(base=timedelta(microseconds=1001), cap=timedelta(microseconds=1001))

    assert policy.delay(1, jitter=ALMOST_ONE) == timedelta(microseconds=1501)


@pytest.mark.parametrize(
    ("base", "cap"),
    [
        (timedelta(milliseconds=1), timedelta(milliseconds=1)),
        (timedelta(days=1), timedelta(days=1)),
        (timedelta(days=1), timedelta(days=30)),
    ],
)
def test_accepts_the_bounds(base: timedelta, cap: timedelta) -> None:
    assert RetryPolicy(base=base, cap=cap).cap == cap


@pytest.mark.parametrize(
    ("base", "cap", "name"),
    [
        (timedelta(milliseconds=1) - MICROSECOND, timedelta(days=1), "base"),
        (timedelta(days=1) + MICROSECOND, timedelta(days=30), "base"),
        (timedelta(seconds=2), timedelta(seconds=2) - MICROSECOND, "cap"),
        (timedelta(seconds=2), timedelta(days=30) + MICROSECOND, "cap"),
    ],
)
def test_refuses_what_is_past_the_bounds(base: timedelta, cap: timedelta, name: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be"):
        RetryPolicy(base=base, cap=cap)
