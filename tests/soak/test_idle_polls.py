"""A thousand idle workers at one server."""

from __future__ import annotations

from pathlib import Path

import pytest

from trials.idle_polls import Outcome, poll_idly
from trials.places import postgres_storage

_POLLED_AT_LEAST_EVERY = 0.5
"""Seconds; see the dealer: after half of a second to all of it, told or not."""


def assert_it_was_easy(outcome: Outcome) -> None:
    print(outcome)  # noqa: T201
    assert outcome.looks_per_second < 1.5 / _POLLED_AT_LEAST_EVERY
    assert outcome.health_p99 < 0.2
    assert outcome.gone_after < 30
    assert outcome.taken_after < 1


@pytest.mark.timeout(180)
def test_a_thousand_idle_polls_cost_one_look_a_tick_in_a_file(tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'tasks.db'}"

    assert_it_was_easy(poll_idly(storage, calls=1000, wait=30, seconds=70))


@pytest.mark.timeout(180)
def test_a_thousand_idle_polls_cost_one_look_a_tick_in_postgres(
    postgres_url: str, postgres_schema: str
) -> None:
    storage = postgres_storage(postgres_url, postgres_schema)

    assert_it_was_easy(poll_idly(storage, calls=1000, wait=30, seconds=70))
