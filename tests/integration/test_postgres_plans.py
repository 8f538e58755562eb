from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import pytest

import leaseq
from leaseq.adapters.postgres.changing import Changing
from leaseq.adapters.postgres.claiming import Claiming
from leaseq.adapters.postgres.counting import Counting
from leaseq.adapters.postgres.finding import Finding
from leaseq.adapters.postgres.listing import Listing
from leaseq.adapters.postgres.statements import Schema
from leaseq.domain.ids import QueueName, TaskId, TaskType
from leaseq.domain.storing import Change, PruneRule, Selection
from leaseq.domain.task import Cancelled, Leased, Status, Task
from leaseq.testing import NOON, a_demand, a_lease, a_task, leased_until, some_grants
from postgres_fixtures import PostgresFixtures
from postgres_plans import Explaining, fill

if TYPE_CHECKING:
    import psycopg

HOUR = timedelta(hours=1)
MANY = 200_000
QUEUE = QueueName("full")
MIDDLE = TaskId("80000000-0000-7000-8000-000000000000")
SEND, RESIZE = TaskType("send"), TaskType("resize")
NOTHING_BUT_INDEXES_OFF = dict.fromkeys(
    (
        "enable_bitmapscan",
        "enable_hashagg",
        "enable_hashjoin",
        "enable_indexonlyscan",
        "enable_indexscan",
        "enable_material",
        "enable_mergejoin",
        "enable_sort",
    ),
    "off",
)


class Planned(PostgresFixtures):
    @pytest.fixture
    def explaining(self, tables: psycopg.Connection) -> Explaining:
        # As fast as it gets: it is the shape of the tables that counts, not how they are kept.
        tables.execute("ALTER TABLE tasks SET UNLOGGED")
        tables.execute("ALTER TABLE tasks SET (autovacuum_enabled = off)")
        # The worst the planner can be told: that there is nothing.
        tables.execute("VACUUM ANALYZE tasks")
        return Explaining(tables)

    @pytest.fixture
    def claiming(self, explaining: Explaining, postgres_schema: str) -> Claiming:
        return Claiming(explaining, Schema(postgres_schema))  # type: ignore[arg-type]  # stands for Connections


class TestClaimPlans(Planned):
    """A claim reads what it leases and little else, whatever there is and was known of it."""

    @pytest.mark.parametrize(
        ("types", "index"),
        [
            pytest.param((), "tasks_waiting", id="of any type"),
            pytest.param((SEND,), "tasks_claimable", id="of one type"),
            pytest.param((SEND, TaskType("a"), TaskType("b")), "tasks_claimable", id="of three"),
        ],
    )
    @pytest.mark.parametrize(
        "shape",
        [
            "urgent tasks for later",
            "tasks of a type nobody asks for",
            "tasks that have ended or are leased",
            "a burst",
        ],
    )
    async def test_what_else_waits_is_not_read(
        self,
        claiming: Claiming,
        explaining: Explaining,
        tables: psycopg.Connection,
        shape: str,
        types: tuple[TaskType, ...],
        index: str,
    ) -> None:
        if shape == "tasks of a type nobody asks for" and not types:
            pytest.skip("a claim of any type asks for every type")
        demand = a_demand(queue=QUEUE, types=types, grants=some_grants(10))
        await claiming.claim(demand, now=NOON)
        match shape:
            case "urgent tasks for later":
                fill(tables, MANY, queue=QUEUE, priority=9, run_after=NOON + HOUR)
            case "tasks of a type nobody asks for":
                fill(tables, MANY, queue=QUEUE, type=RESIZE, priority=9, run_after=NOON - HOUR)
                fill(tables, 1000, queue=QUEUE, type=RESIZE, run_after=NOON - HOUR)
            case "tasks that have ended or are leased":
                fill(tables, MANY // 2, queue=QUEUE, status="dead", run_after=NOON - HOUR)
                fill(tables, MANY // 2, queue=QUEUE, status="leased", run_after=NOON - HOUR)
            case _:
                fill(tables, MANY, queue=QUEUE, run_after=NOON - HOUR)
        fill(tables, 20, queue=QUEUE, run_after=NOON - HOUR)

        await claiming.claim(demand, now=NOON)

        assert explaining.leased == 10
        assert explaining.indexes <= {index, "tasks_pkey", "queues_pkey"}
        assert explaining.pages < 500

    async def test_a_large_claim_costs_the_same_for_each_task(
        self, claiming: Claiming, explaining: Explaining, tables: psycopg.Connection
    ) -> None:
        demand = a_demand(queue=QUEUE, types=[SEND, RESIZE], grants=some_grants(1000))
        await claiming.claim(demand, now=NOON)
        fill(tables, MANY // 2, queue=QUEUE, run_after=NOON - HOUR)
        fill(tables, MANY // 2, queue=QUEUE, type=RESIZE, run_after=NOON - HOUR)

        await claiming.claim(demand, now=NOON)

        assert explaining.leased == 1000
        assert explaining.pages < 60 * 1000

    @pytest.mark.parametrize("types", [(), (SEND,), (SEND, RESIZE)], ids=["any", "one", "two"])
    async def test_the_worst_of_plans_leases_no_more_than_was_granted(
        self, tables: psycopg.Connection, postgres_schema: str, types: tuple[TaskType, ...]
    ) -> None:
        forced = Explaining(tables, settings=NOTHING_BUT_INDEXES_OFF)
        claiming = Claiming(forced, Schema(postgres_schema))  # type: ignore[arg-type]  # stands for Connections
        fill(tables, 10, queue=QUEUE, run_after=NOON - HOUR)

        await claiming.claim(a_demand(queue=QUEUE, types=types, grants=some_grants(2)), now=NOON)

        assert forced.leased == 2


class TestOtherPlans(Planned):
    async def test_a_change_reads_its_tasks_and_no_other_leases(
        self, explaining: Explaining, tables: psycopg.Connection, postgres_schema: str
    ) -> None:
        changing = Changing(explaining, Schema(postgres_schema))  # type: ignore[arg-type]  # stands for Connections
        olds = [a_task(state=leased_until(NOON), queue=QUEUE) for _ in range(10)]
        endings = [Change(old=old, new=_next(old, Cancelled(at=NOON))) for old in olds]
        renewals = [Change(old=old, new=_next(old, Leased(lease=a_lease()))) for old in olds]
        pages = []

        for changes in (endings, renewals):
            await _explained(changing, changes)
        fill(tables, MANY, queue=QUEUE, status="leased", run_after=NOON - HOUR)
        for index, row in enumerate(tables.execute("SELECT id::text FROM tasks LIMIT 10")):
            endings[index] = _of(endings[index], row[0])
            renewals[index] = _of(renewals[index], row[0])
        for changes in (endings, renewals):
            await _explained(changing, changes)
            pages.append(explaining.pages)
            assert explaining.indexes == {"tasks_pkey"}

        assert max(pages) < 600

    async def test_looks_read_no_more_than_they_answer(
        self, explaining: Explaining, tables: psycopg.Connection, postgres_schema: str
    ) -> None:
        schema = Schema(postgres_schema)
        finding = Finding(explaining, schema)  # type: ignore[arg-type]  # stands for Connections
        listing = Listing(explaining, schema)  # type: ignore[arg-type]  # stands for Connections
        counting = Counting(explaining, schema)  # type: ignore[arg-type]  # stands for Connections
        pages: dict[str, int] = {}

        async def look() -> None:
            with pytest.raises(ValueError, match="not enough values"):
                await finding.next_due([QUEUE, QueueName("none")], now=NOON)
            pages["next due"] = explaining.pages
            for name, selection in {
                "page": Selection(),
                "page of a queue": Selection(queue=QUEUE),
                "page of a status": Selection(statuses=(Status.DEAD,)),
                "page of both": Selection(queue=QUEUE, statuses=(Status.QUEUED, Status.DEAD)),
                "page of leased": Selection(statuses=(Status.LEASED,)),
                "page after another": Selection(queue=QUEUE, before=MIDDLE),
            }.items():
                await listing.search(selection, limit=100, with_payload=True)
                pages[name] = explaining.pages
            await counting.stats(now=NOON)
            pages["stats"] = explaining.pages

        await look()
        fill(tables, MANY, queue=QUEUE, status="dead", run_after=NOON - HOUR)
        fill(tables, MANY // 2, queue=QUEUE, run_after=NOON - HOUR)
        fill(tables, 100, queue=QUEUE, priority=3, run_after=NOON + HOUR)
        fill(tables, 100, queue="other", status="leased", run_after=NOON + HOUR)
        tables.execute("VACUUM tasks")  # the counts read the index alone, where that is possible
        await look()

        assert {name: number for name, number in pages.items() if number >= 2000} == {}

    async def test_pruning_reads_what_it_deletes(
        self, explaining: Explaining, tables: psycopg.Connection, postgres_schema: str
    ) -> None:
        changing = Changing(explaining, Schema(postgres_schema))  # type: ignore[arg-type]  # stands for Connections
        rules = [PruneRule(status=Status.DEAD, finished_before=NOON)]

        for number in (0, MANY):
            if number:
                fill(tables, number, queue=QUEUE, status="dead", run_after=NOON - HOUR)
            with pytest.raises(ValueError, match="not enough values"):
                await changing.prune(rules, limit=10)

        assert explaining.indexes == {"tasks_finished", "tasks_pkey"}
        assert explaining.pages < 300


def test_no_statement_limits_rows_inside_a_condition() -> None:
    folder = Path(leaseq.__file__).parent / "adapters" / "postgres"
    texts = {path.name: path.read_text() for path in folder.glob("*.py")}

    assert texts
    assert [name for name, text in texts.items() if re.search(r"\bIN\s*\(\s*SELECT", text)] == []


async def _explained(changing: Changing, changes: list[Change]) -> None:
    # The plan has no outcomes, so there is none for any change.
    with pytest.raises(KeyError):
        await changing.replace(changes)


def _next(task: Task, state: Leased | Cancelled) -> Task:
    return attrs.evolve(task, state=state, version=task.version + 1)


def _of(change: Change, task_id: str) -> Change:
    return Change(
        old=attrs.evolve(change.old, id=TaskId(task_id)),
        new=attrs.evolve(change.new, id=TaskId(task_id)),
    )
