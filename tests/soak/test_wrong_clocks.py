"""Five hundred tasks under two servers whose clocks are twenty minutes apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from trials.places import postgres_storage
from trials.wrong_clocks import FAKETIME, run_by_wrong_clocks


@pytest.mark.skipif(not FAKETIME.exists(), reason="needs the Debian package libfaketime")
@pytest.mark.timeout(180)
def test_nothing_starts_twice_or_early_under_clocks_that_disagree(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    storage = postgres_storage(postgres_url, postgres_schema)

    outcome = run_by_wrong_clocks(storage, tmp_path, tasks=500)

    print(outcome)  # noqa: T201
    assert outcome.statuses == {"succeeded": 500}
    assert outcome.attempts == {1: 500}
    assert outcome.started_twice == set()
    # To the error with which a server knows the clock of the database.
    assert outcome.earliest > -0.05
    assert max(map(abs, outcome.clocks)) < 1
