"""PostgreSQL restarted in both ways, and away for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest

from trials.restarted_postgres import FAST, IMMEDIATE, outlive_outages


@pytest.mark.timeout(300)
def test_work_goes_on_within_ten_seconds_of_the_return_of_the_database(tmp_path: Path) -> None:
    outcome = outlive_outages(tmp_path, [(IMMEDIATE, 0), (FAST, 0), (FAST, 60), (IMMEDIATE, 10)])

    print(*outcome.outages, sep="\n")  # noqa: T201
    assert max(outage.back_after for outage in outcome.outages) < 10
    assert max(outage.processor_share for outage in outcome.outages) < 0.05
    assert max(outage.log_lines_per_second for outage in outcome.outages) < 2
    assert outcome.lost == set()
    assert outcome.statuses == {"succeeded": outcome.acknowledged}
    assert outcome.run_to_the_end == outcome.acknowledged
