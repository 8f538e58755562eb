from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.domain.errors import (
    ContendedError,
    InvalidArgumentError,
    LeaseLostError,
    LostReason,
    TaskNotFoundError,
    TaskQueueError,
)
from leaseq.domain.requests import LeaseRef
from leaseq.domain.views import Beat
from leaseq.entrypoints.worker.context import StopReason
from leaseq.entrypoints.worker.ledger import Hold, Ledger, Sign, plan_beats
from leaseq.entrypoints.worker.moment import Moment
from leaseq.testing import a_task_id

LEASE = 30.0
PERIOD = 10.0
PLAN = plan_beats(timedelta(seconds=LEASE))
BEAT = Beat(lease_duration=timedelta(seconds=LEASE), cancel_requested=False)
CALLED_OFF = Beat(lease_duration=timedelta(seconds=LEASE), cancel_requested=True)


def at(seconds: float) -> Moment:
    return Moment(seconds, seconds)


def a_ref(number: int = 1) -> LeaseRef:
    return LeaseRef(task_id=a_task_id(number), lease_token=f"token-{number}")


def lost(ref: LeaseRef) -> LeaseLostError:
    return LeaseLostError(a_task_id(int(ref.lease_token[6:])), LostReason.LEASE_SUPERSEDED)


ONE, TWO, THREE = (a_ref(number) for number in (1, 2, 3))


@pytest.fixture
def ledger() -> Ledger:
    return Ledger(PLAN)


def hold(ledger: Ledger, ref: LeaseRef = ONE, *, since: float = 0.0) -> None:
    ledger.hold(Hold(ref=ref, anchor=at(since), remaining=LEASE))


def land(
    ledger: Ledger,
    answers: Sequence[Beat | TaskQueueError],
    *,
    refs: Sequence[LeaseRef] = (ONE,),
    sent: float = PERIOD,
) -> list[tuple[LeaseRef, StopReason]]:
    verdicts = ledger.landed(refs, answers, sent=at(sent), now=at(sent), jitter=0.0)
    return [(verdict.ref, verdict.reason) for verdict in verdicts]


def lapsed(ledger: Ledger, now: float) -> list[LeaseRef]:
    verdicts = ledger.lapsed(at(now))
    assert all(verdict.reason is StopReason.LEASE_LOST for verdict in verdicts)
    return [verdict.ref for verdict in verdicts]


def test_nothing_is_due_while_nothing_is_held(ledger: Ledger) -> None:
    assert ledger.due(at(1e6)) is None


def test_the_first_beat_is_due_after_one_period(ledger: Ledger) -> None:
    hold(ledger)

    assert ledger.due(at(PERIOD - 0.001)) is None
    assert ledger.due(at(PERIOD)) == (ONE,)


def test_a_lease_that_arrived_with_less_left_is_renewed_sooner(ledger: Ledger) -> None:
    ledger.hold(Hold(ref=ONE, anchor=at(0), remaining=15))

    assert ledger.due(at(5)) == (ONE,)


def test_the_next_beat_is_due_a_period_later_even_if_the_last_one_hangs(ledger: Ledger) -> None:
    hold(ledger)
    ledger.due(at(PERIOD))

    assert ledger.due(at(2 * PERIOD - 0.001)) is None
    assert ledger.due(at(2 * PERIOD)) == (ONE,)


def test_a_beat_takes_along_leases_that_are_half_way_to_theirs(ledger: Ledger) -> None:
    hold(ledger, ONE)
    hold(ledger, TWO, since=PERIOD / 2)
    hold(ledger, THREE, since=PERIOD / 2 + 0.001)

    assert ledger.due(at(PERIOD)) == (ONE, TWO)


def test_a_failed_beat_is_repeated_soon(ledger: Ledger) -> None:
    hold(ledger)
    ledger.due(at(PERIOD))
    ledger.failed([ONE], now=at(11), jitter=0.5)
    wait = PLAN.retry * 1.25

    assert ledger.due(at(11 + wait - 0.001)) is None
    assert ledger.due(at(11 + wait)) == (ONE,)


def test_a_landed_beat_keeps_the_lease_from_when_it_was_sent(ledger: Ledger) -> None:
    hold(ledger)

    assert land(ledger, [BEAT], sent=PERIOD) == []

    assert lapsed(ledger, PERIOD + LEASE - 0.001) == []
    assert lapsed(ledger, PERIOD + LEASE) == [ONE]


def test_an_answer_that_was_overtaken_shortens_nothing(ledger: Ledger) -> None:
    hold(ledger)

    land(ledger, [BEAT], sent=20)
    land(ledger, [BEAT], sent=10)

    assert lapsed(ledger, 20 + LEASE - 0.001) == []


@pytest.mark.parametrize(
    "refusal",
    [lost(ONE), TaskNotFoundError(a_task_id(1)), InvalidArgumentError([])],
    ids=["lost", "not found", "nonsense"],
)
def test_a_refused_beat_means_that_the_lease_is_lost(
    ledger: Ledger, refusal: TaskQueueError
) -> None:
    hold(ledger)

    assert land(ledger, [refusal]) == [(ONE, StopReason.LEASE_LOST)]
    assert ledger.refs == ()


def test_contention_is_no_verdict_and_is_asked_again_soon(ledger: Ledger) -> None:
    hold(ledger)
    ledger.due(at(PERIOD))

    assert land(ledger, [ContendedError("task")]) == []
    assert ledger.due(at(PERIOD + PLAN.retry)) == (ONE,)


def test_a_cancel_is_told_once(ledger: Ledger) -> None:
    hold(ledger)

    assert land(ledger, [CALLED_OFF], sent=10) == [(ONE, StopReason.CANCEL_REQUESTED)]
    assert land(ledger, [CALLED_OFF], sent=20) == []


def test_each_lease_gets_its_own_verdict(ledger: Ledger) -> None:
    refs = [ONE, TWO, THREE]
    for ref in refs:
        hold(ledger, ref)

    verdicts = land(ledger, [BEAT, lost(TWO), CALLED_OFF], refs=refs)

    assert verdicts == [(TWO, StopReason.LEASE_LOST), (THREE, StopReason.CANCEL_REQUESTED)]
    assert ledger.refs == (ONE, THREE)


def test_answers_about_leases_that_were_dropped_are_ignored(ledger: Ledger) -> None:
    hold(ledger)
    ledger.drop(ONE)

    assert land(ledger, [lost(ONE)]) == []


def test_a_lease_without_a_landed_beat_is_lost_when_its_time_is_over(ledger: Ledger) -> None:
    hold(ledger)

    assert lapsed(ledger, LEASE - 0.001) == []
    assert lapsed(ledger, LEASE) == [ONE]
    assert ledger.refs == ()


def test_time_spent_in_suspend_counts(ledger: Ledger) -> None:
    ledger.hold(Hold(ref=ONE, anchor=Moment(0, 0), remaining=LEASE))

    assert [v.ref for v in ledger.lapsed(Moment(1, LEASE))] == [ONE]


def test_leasing_stops_when_a_lease_ran_out_unheard_and_until_a_beat_lands(
    ledger: Ledger,
) -> None:
    hold(ledger)
    assert not ledger.silent

    lapsed(ledger, LEASE)
    assert ledger.silent

    land(ledger, [], refs=[], sent=LEASE + 1)
    assert not ledger.silent


def test_while_nobody_answers_it_is_asked_without_leases_too(ledger: Ledger) -> None:
    hold(ledger)
    lapsed(ledger, LEASE)

    assert ledger.due(at(LEASE)) == ()
    assert ledger.due(at(LEASE + PLAN.retry - 0.001)) is None
    assert ledger.due(at(LEASE + PLAN.retry)) == ()


def test_a_lease_is_renewed_while_its_outcome_is_reported_but_not_for_ever(
    ledger: Ledger,
) -> None:
    hold(ledger)
    ledger.reporting(ONE, now=at(5))

    assert ledger.due(at(15)) == (ONE,)
    land(ledger, [BEAT], sent=15)
    assert ledger.due(at(5 + LEASE * 2 / 3)) is None
    assert lapsed(ledger, 15 + LEASE) == [ONE]
    assert not ledger.silent


def test_a_report_that_is_never_taken_frees_the_lease_within_two_of_its_lengths(
    ledger: Ledger,
) -> None:
    hold(ledger)
    ledger.reporting(ONE, now=at(0))
    now = 0.0

    while not lapsed(ledger, now):
        if ledger.due(at(now)):
            land(ledger, [BEAT], sent=now)
        now += 0.5

    assert now <= 2 * LEASE


def test_a_lease_refused_while_reporting_waits_for_the_answer_to_the_report(
    ledger: Ledger,
) -> None:
    hold(ledger)
    ledger.reporting(ONE, now=at(9))

    assert land(ledger, [lost(ONE)]) == []
    assert ledger.due(at(25)) is None
    assert lapsed(ledger, LEASE) == [ONE]
    assert not ledger.silent


@given(
    lease=st.floats(1, 20),
    beats=st.lists(
        st.tuples(st.sampled_from(["lands", "fails", "is swallowed"]), st.floats(0, 1)),
        min_size=3,
        max_size=12,
    ),
)
def test_a_lease_lives_as_long_as_no_two_beats_in_a_row_go_astray(
    lease: float, beats: list[tuple[str, float]]
) -> None:
    plan = plan_beats(timedelta(seconds=lease))
    ledger = Ledger(plan)
    ledger.hold(Hold(ref=ONE, anchor=at(0), remaining=plan.lease))
    now, astray = 0.0, False

    for fate, delay in beats:
        while ledger.due(at(now)) is None:
            now += plan.tick
            assert ledger.lapsed(at(now)) == []
        sent = now
        if fate == "lands" or astray:
            astray = False
            now += delay * plan.deadline
            assert ledger.lapsed(at(now)) == []
            answer = Beat(lease_duration=timedelta(seconds=plan.lease), cancel_requested=False)
            ledger.landed([ONE], [answer], sent=at(sent), now=at(now), jitter=0.0)
            continue
        astray = True
        if fate == "fails":
            now += delay * plan.deadline
            ledger.failed([ONE], now=at(now), jitter=0.999)


def test_a_mute_worker_keeps_a_lease_until_the_timeout_of_its_handler(ledger: Ledger) -> None:
    ledger.hold(Hold(ref=ONE, anchor=at(0), remaining=LEASE, must_end=at(15)))
    ledger.hold(Hold(ref=TWO, anchor=at(0), remaining=LEASE))

    assert ledger.due(at(10), Sign.MUTE) == (ONE, TWO)
    assert ledger.due(at(20), Sign.MUTE) == (TWO,)
    assert ledger.due(at(30), Sign.ALIVE) == (ONE, TWO)


def test_nothing_is_renewed_for_a_worker_that_is_away(ledger: Ledger) -> None:
    ledger.hold(Hold(ref=ONE, anchor=at(0), remaining=LEASE))

    assert ledger.due(at(20), Sign.AWAY) is None
    assert [verdict.ref for verdict in ledger.lapsed(at(LEASE), Sign.AWAY)] == [ONE]
    assert not ledger.silent
