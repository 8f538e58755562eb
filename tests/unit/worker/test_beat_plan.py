from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.domain.limits import MAX_LEASE, MIN_LEASE
from leaseq.entrypoints.worker.ledger import BeatPlan, plan_beats


@given(st.timedeltas(MIN_LEASE, MAX_LEASE))
def test_one_swallowed_beat_costs_no_lease_of_any_length(lease: timedelta) -> None:
    plan = plan_beats(lease)

    assert plan.worst_gap < plan.lease
    assert plan.period == pytest.approx(plan.lease / 3)
    assert plan.deadline < plan.period


@pytest.mark.parametrize("lease", [MIN_LEASE - timedelta(microseconds=1), timedelta(days=1)])
def test_a_lease_out_of_bounds_is_refused(lease: timedelta) -> None:
    with pytest.raises(ValueError, match="lease_duration must be from 1 s to 12 h"):
        plan_beats(lease)


@given(
    lease=st.floats(1, 3600),
    period=st.floats(0.1, 3600),
    deadline=st.floats(0.1, 3600),
    tick=st.floats(0.01, 3600),
)
def test_a_plan_that_exists_keeps_its_leases(
    lease: float, period: float, deadline: float, tick: float
) -> None:
    try:
        plan = BeatPlan(lease=lease, period=period, deadline=deadline, retry=period / 4, tick=tick)
    except ValueError:
        return

    assert 2 * (period + tick) + deadline < plan.lease
