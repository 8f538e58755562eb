"""One call costs the same with few tasks stored and with many, in steps of SQLite's machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

import pytest

from leaseq.adapters.sqlite import changing, claiming, finding, listing
from leaseq.adapters.sqlite.connection import connect_writer
from leaseq.adapters.sqlite.file import prepare
from leaseq.adapters.sqlite.rows import microseconds
from leaseq.domain.ids import IdempotencyKey, QueueName, TaskType
from leaseq.domain.storing import PruneRule, Selection
from leaseq.domain.task import Status
from leaseq.testing import (
    DAY,
    EMAILS,
    HOUR,
    NOON,
    RESIZE,
    SECOND,
    SEND,
    a_demand,
    a_task,
    a_task_id,
    some_grants,
)

Work = Callable[[sqlite3.Connection], object]

FEW: Final = 50
MANY: Final = 5000
MINE: Final = [a_task(id=a_task_id(number), type=SEND, key=f"k{number}") for number in range(20)]

_FILL: Final = """
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
    INSERT INTO tasks (id, queue, type, payload, priority, run_after, status, finished_at)
    SELECT printf('%08x-0000-7000-8000-%012x', i + 1000, :kind), :queue, :type, '{}', :priority,
        :run_after + i, :status, CASE WHEN :status = 'queued' THEN NULL ELSE :run_after + i END
    FROM n
"""

CALLS: Final[dict[str, Work]] = {
    "a claim of one type": lambda c: claiming.claim(
        c, a_demand(types=[SEND], grants=some_grants(10)), now=NOON
    ),
    "a claim of a type that has no task": lambda c: claiming.claim(
        c, a_demand(types=[TaskType("nobody")], grants=some_grants(10)), now=NOON
    ),
    "a claim of any type": lambda c: claiming.claim(c, a_demand(grants=some_grants(10)), now=NOON),
    "a look ahead": lambda c: finding.next_due(c, [EMAILS, QueueName("rare")], now=NOON),
    "the age of the oldest": lambda c: finding.due_since(c, EMAILS, now=NOON),
    "a load": lambda c: finding.load(c, [task.id for task in MINE], with_payload=True),
    "the expired": lambda c: finding.expired(c, now=NOON, limit=10),
    "an add": lambda c: changing.add(c, [a_task(), MINE[1], a_task(key="k1")]),
    "a delete": lambda c: changing.delete(c, MINE[:10]),
    "a prune": lambda c: changing.prune(
        c, [PruneRule(status=Status.SUCCEEDED, finished_before=NOON)], limit=10
    ),
    "a page of everything": lambda c: _page(c, Selection()),
    "a page of a queue": lambda c: _page(c, Selection(queue=EMAILS)),
    "a page of a status": lambda c: _page(c, Selection(statuses=(Status.SUCCEEDED,))),
    "a page of a status that few have": lambda c: _page(c, Selection(statuses=(Status.DEAD,))),
    "a page in the middle": lambda c: _page(c, Selection(queue=EMAILS, before=a_task_id(1010))),
    "the holder of a key": lambda c: _page(c, Selection(idempotency_key=IdempotencyKey("k1"))),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_costs_the_same_with_many_tasks(tmp_path: Path, call: Work) -> None:
    with_few = _steps(tmp_path / "few.db", FEW, call)
    with_many = _steps(tmp_path / "many.db", MANY, call)

    assert with_many <= 1.2 * with_few


def test_depths_are_counted_no_further_than_they_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "COUNTED_EXACTLY", FEW)

    with_few = _steps(tmp_path / "few.db", FEW + 1, lambda c: listing.stats(c, now=NOON))
    with_many = _steps(tmp_path / "many.db", MANY, lambda c: listing.stats(c, now=NOON))

    assert with_many <= 1.2 * with_few


def _page(connection: sqlite3.Connection, selection: Selection) -> object:
    return listing.search(connection, selection, limit=20, with_payload=False)


def _steps(path: Path, count: int, call: Work) -> int:
    """Return how many steps `call` takes with `count` tasks of every kind that is in the way."""
    with closing(connect_writer(prepare(path), lock_wait=SECOND)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        changing.add(connection, MINE)
        _fill(connection, count, 1, priority=9, run_after=NOON + HOUR)
        _fill(connection, count, 2, priority=5, type_=RESIZE)
        _fill(connection, count, 3, status="succeeded", run_after=NOON - DAY)
        _fill(connection, FEW, 4, queue="rare", status="dead")
        taken = 0

        def count_step() -> None:
            nonlocal taken
            taken += 1

        connection.set_progress_handler(count_step, 1)
        call(connection)
        return taken


def _fill(
    connection: sqlite3.Connection,
    count: int,
    kind: int,
    *,
    queue: str = EMAILS,
    type_: str = SEND,
    priority: int = 0,
    run_after: datetime = NOON - HOUR,
    status: str = "queued",
) -> None:
    given = {
        "count": count,
        "kind": kind,
        "queue": queue,
        "type": type_,
        "priority": priority,
        "run_after": microseconds(run_after),
        "status": status,
    }
    connection.execute(_FILL, given)
