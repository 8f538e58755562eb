from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.adapters.postgres.clock import PROBES, Offset, PostgresClock, Probe, best
from leaseq.testing import MICROSECOND, NOON

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STARTED = NOON - timedelta(days=3)
RESTARTED = NOON - timedelta(seconds=3)
MILLISECOND = 1000
SECOND = 1_000_000


def a_probe(
    *, asked_at: int = 0, round_trip: int = 100, said: datetime = NOON, server: datetime = STARTED
) -> Probe:
    return Probe(asked_at=asked_at, answered_at=asked_at + round_trip, said=said, server=server)


def an_offset(
    value: int = 0, *, error: int = 50, measured_at: int = 0, server: datetime = STARTED
) -> Offset:
    return Offset(value=value, error=error, measured_at=measured_at, server=server)


def test_the_probe_with_the_shortest_round_trip_counts() -> None:
    slow = a_probe(round_trip=9000, said=NOON + timedelta(hours=1))
    fast = a_probe(asked_at=20_000, round_trip=100)

    offset = best([slow, fast, slow])

    assert EPOCH + timedelta(microseconds=offset.moment(20_050)) == NOON
    assert offset.measured_at == 20_100


@given(
    truth=st.integers(-(10**15), 10**15),
    there=st.integers(0, 10**7),
    back=st.integers(0, 10**7),
    asked_at=st.integers(0, 10**12),
)
def test_the_truth_lies_within_the_error_however_the_round_trip_is_split(
    truth: int, there: int, back: int, asked_at: int
) -> None:
    said = NOON + timedelta(microseconds=truth % 10**9)
    true_offset = (said - EPOCH) // MICROSECOND - (asked_at + there)

    offset = best([a_probe(asked_at=asked_at, round_trip=there + back, said=said)])

    assert abs(offset.value - true_offset) <= offset.error


def test_uncertainty_grows_until_the_next_measurement() -> None:
    offset = an_offset(error=50, measured_at=10 * SECOND)

    assert offset.uncertainty(10 * SECOND) == 50
    assert offset.uncertainty(12 * SECOND) == 50 + 1000


@pytest.mark.parametrize("difference", [-50, 0, 50])
def test_a_measurement_that_agrees_changes_no_value(difference: int) -> None:
    newer = an_offset(1000 + difference, error=50, measured_at=SECOND)

    kept = an_offset(1000).kept(newer)

    assert kept == attrs.evolve(newer, value=1000, error=50 + abs(difference))


@pytest.mark.parametrize("difference", [-51, 51])
def test_a_measurement_that_contradicts_counts(difference: int) -> None:
    newer = an_offset(1000 + difference, error=50, measured_at=SECOND)

    assert an_offset(1000).kept(newer) == newer


def test_the_measurement_of_another_server_always_counts() -> None:
    newer = an_offset(1001, server=RESTARTED)

    assert an_offset(1000).kept(newer) == newer


class Database:
    """A database's clock and a local one, both moved by hand."""

    def __init__(self) -> None:
        self.local = 0
        self.ahead = (NOON - EPOCH) // MICROSECOND
        self.server = STARTED
        self.asked = 0
        self.travel = 100

    def read(self) -> int:
        return self.local

    async def ask(self) -> tuple[datetime, datetime]:
        self.asked += 1
        self.local += self.travel
        said = self.time()
        self.local += self.travel
        return said, self.server

    def time(self) -> datetime:
        return EPOCH + timedelta(microseconds=self.local + self.ahead)


async def measured(database: Database) -> PostgresClock:
    clock = PostgresClock(database.read)
    await clock.measure(database.ask)
    return clock


async def test_the_clock_tells_the_database_s_time_in_utc() -> None:
    database = Database()
    clock = await measured(database)

    database.local += 7 * SECOND

    assert clock.now() == database.time()
    assert clock.now().tzinfo is UTC
    assert database.asked == PROBES


async def test_uncertainty_is_half_the_round_trip_and_drift() -> None:
    database = Database()
    clock = await measured(database)

    database.local += 2 * SECOND

    assert clock.uncertainty() == timedelta(microseconds=100 + 1 + 1000)


async def test_after_a_small_step_back_the_clock_stands_still_and_says_how_far_it_is_ahead() -> (
    None
):
    database = Database()
    clock = await measured(database)
    before = clock.now()

    database.ahead -= 500 * MILLISECOND
    await clock.measure(database.ask)

    assert clock.now() == before
    assert clock.uncertainty() >= before - database.time()
    database.local += SECOND
    assert clock.now() == database.time()


async def test_a_large_step_back_is_followed_at_once() -> None:
    database = Database()
    clock = await measured(database)
    clock.now()

    database.ahead -= 3 * SECOND
    await clock.measure(database.ask)

    assert clock.now() == database.time()


async def test_a_new_connection_to_the_same_server_costs_one_question() -> None:
    database = Database()
    clock = await measured(database)
    database.asked = 0
    database.ahead += 5 * SECOND

    await clock.greet(database.ask)

    assert database.asked == 1
    assert clock.now() == database.time() - timedelta(seconds=5)


async def test_a_new_connection_to_another_server_measures_its_clock() -> None:
    database = Database()
    clock = await measured(database)
    database.ahead += 5 * SECOND
    database.server = RESTARTED

    await clock.greet(database.ask)

    assert clock.now() == database.time()
