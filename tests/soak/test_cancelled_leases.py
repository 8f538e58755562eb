"""Fifty clients that change their minds for half a minute."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trials.cancelled_leases import cancel_leases


@pytest.mark.timeout(180)
def test_cancelled_leases_lose_and_strand_no_task(tmp_path: Path) -> None:
    outcome = cancel_leases(
        f"sqlite:///{tmp_path / 'tasks.db'}",
        tmp_path,
        clients=50,
        seconds=30,
        luck=random.Random(),  # noqa: S311
    )

    print(outcome)  # noqa: T201
    assert outcome.counted == {0: outcome.tasks}
    assert set(outcome.statuses) <= {"queued", "leased"}
    assert outcome.held_but_not_leased == set()
    assert outcome.held_twice == set()
    assert outcome.leased_by_nobody == set()
