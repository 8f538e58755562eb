"""Short versions of what `tests/soak` does at length."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from trials.cancelled_leases import cancel_leases
from trials.idle_polls import poll_idly
from trials.killed_processes import kill_processes
from trials.places import postgres_storage
from trials.stopped_workers import stop_workers
from trials.wrong_clocks import FAKETIME, run_by_wrong_clocks


def test_two_hundred_idle_polls_cost_one_look_a_tick(tmp_path: Path) -> None:
    outcome = poll_idly(f"sqlite:///{tmp_path / 'tasks.db'}", calls=200, wait=5, seconds=3)

    # A tick is half a second or more; the rest is for its beginning and end.
    assert outcome.looks_per_second < 3
    assert outcome.gone_after < 5


def test_clients_that_change_their_minds_lose_no_task(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tasks.db'}"

    outcome = cancel_leases(storage, tmp_path, clients=10, seconds=1, luck=random.Random())  # noqa: S311

    assert outcome.counted == {0: outcome.tasks}
    assert set(outcome.statuses) <= {"queued", "leased"}
    assert outcome.held_but_not_leased == set()
    assert outcome.held_twice == set()
    assert outcome.leased_by_nobody == set()


def test_ten_stops_lose_nothing_and_charge_nothing(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tasks.db'}"

    outcome = stop_workers(storage, tmp_path, times=10, luck=random.Random())  # noqa: S311

    assert outcome.statuses == {"succeeded": outcome.tasks}
    assert set(outcome.charged) <= {"ReleasedTooOften"}
    assert outcome.run_twice == set()
    assert outcome.exit_codes == {0: 10}


def test_a_few_kills_lose_no_task(postgres_url: str, postgres_schema: str, tmp_path: Path) -> None:
    storage = postgres_storage(postgres_url, postgres_schema)

    outcome = kill_processes(storage, tmp_path, seconds=1, luck=random.Random())  # noqa: S311

    assert outcome.lost == set()
    assert outcome.statuses == {"succeeded": outcome.acknowledged}
    assert outcome.never_ran_to_the_end == set()


@pytest.mark.skipif(not FAKETIME.exists(), reason="needs the Debian package libfaketime")
def test_nothing_starts_twice_or_early_under_clocks_that_disagree(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    outcome = run_by_wrong_clocks(
        postgres_storage(postgres_url, postgres_schema), tmp_path, tasks=60
    )

    assert outcome.statuses == {"succeeded": 60}
    assert outcome.started_twice == set()
    assert outcome.earliest > -0.05
