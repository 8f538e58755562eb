"""Three hundred stops of a working worker."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trials.stopped_workers import stop_workers


@pytest.mark.timeout(900)
def test_three_hundred_stops_lose_nothing_and_charge_nothing(tmp_path: Path) -> None:
    outcome = stop_workers(
        f"sqlite:///{tmp_path / 'tasks.db'}",
        tmp_path,
        times=300,
        luck=random.Random(),  # noqa: S311
    )

    print(outcome)  # noqa: T201
    assert outcome.statuses == {"succeeded": outcome.tasks}
    assert set(outcome.charged) <= {"ReleasedTooOften"}
    assert outcome.run_twice == set()
    assert outcome.exit_codes == {0: 300}
    assert outcome.slowest_stop < 3
