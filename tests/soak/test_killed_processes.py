"""Minutes of kill -9 for servers and workers under load."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from leaseq_process import run_leaseq
from trials.killed_processes import Outcome, kill_processes
from trials.places import postgres_storage

_COUNT_ENDS = """
CREATE TABLE ends (task_id uuid NOT NULL);
CREATE FUNCTION note_end() RETURNS trigger LANGUAGE plpgsql
    SET search_path FROM CURRENT
    AS 'BEGIN INSERT INTO ends VALUES (NEW.id); RETURN NULL; END';
CREATE TRIGGER ends AFTER UPDATE ON tasks FOR EACH ROW
    WHEN (NEW.status NOT IN ('queued', 'leased')) EXECUTE FUNCTION note_end();
"""


def assert_nothing_was_lost(outcome: Outcome) -> None:
    print(outcome)  # noqa: T201
    assert outcome.lost == set()
    assert outcome.statuses == {"succeeded": outcome.acknowledged}
    assert outcome.never_ran_to_the_end == set()
    assert set(outcome.errors) <= {"LeaseExpired"}
    # The workers of the other server go on; for a while they may have nothing to do, since the
    # producer waits up to 10 s for the server that was killed.
    assert outcome.slowest_recovery < 15
    # A lease, the reaper, and what the last kill left undone.
    assert outcome.drained_after < 30


@pytest.mark.timeout(400)
def test_kills_lose_no_task_in_a_file(tmp_path: Path) -> None:
    outcome = kill_processes(
        f"sqlite:///{tmp_path / 'tasks.db'}",
        tmp_path,
        seconds=90,
        luck=random.Random(),  # noqa: S311
    )

    assert_nothing_was_lost(outcome)


@pytest.mark.timeout(400)
def test_kills_lose_no_task_in_postgres_and_each_ends_once(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    migrated = run_leaseq(
        "migrate", "--storage", postgres_url, "--schema", postgres_schema, cwd=tmp_path
    )
    assert migrated.returncode == 0, migrated.stderr
    with psycopg.connect(postgres_url, autocommit=True) as tables:
        tables.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(postgres_schema)))
        tables.execute(_COUNT_ENDS)

        outcome = kill_processes(
            postgres_storage(postgres_url, postgres_schema),
            tmp_path,
            seconds=90,
            luck=random.Random(),  # noqa: S311
        )
        ends = tables.execute("SELECT count(*), count(DISTINCT task_id) FROM ends").fetchone()

    assert_nothing_was_lost(outcome)
    assert ends == (outcome.acknowledged, outcome.acknowledged)
