from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from leaseq.adapters.postgres import open_postgres
from leaseq.domain import lifecycle
from leaseq.domain.ids import LeaseToken
from leaseq.domain.storing import Change, Replaced
from leaseq.testing import NOON, SEND, a_demand, a_lease, a_task, some_grants
from leaseq_process import leaseq_server, run_leaseq
from pgbouncer import pgbouncer

if TYPE_CHECKING:
    from pathlib import Path


async def test_tasks_live_behind_pgbouncer_on_a_single_session(
    postgres_url: str, postgres_schema: str
) -> None:
    tasks = [a_task(key=f"k-{number}") for number in range(20)]
    with pgbouncer(postgres_url, pool_size=1) as url:
        async with (
            open_postgres(url, schema=postgres_schema, pooler="transaction") as one,
            open_postgres(url, schema=postgres_schema, pooler="transaction") as other,
        ):
            await one.tasks.add(tasks)
            first = await one.tasks.claim(a_demand(grants=some_grants(10)), now=NOON)
            rest = await other.tasks.claim(
                a_demand(types=[SEND], grants=[a_lease("late") for _ in range(20)]), now=NOON
            )
            ended = [
                Change(
                    old=task,
                    new=lifecycle.complete(task, token=LeaseToken("late"), result=None, now=NOON),
                )
                for task in rest.tasks
            ]
            outcomes = await one.tasks.replace(ended)
            await other.tend()

    assert (len(first.tasks), len(rest.tasks)) == (10, 10)
    assert outcomes == [Replaced.DONE] * 10


async def test_many_callers_share_two_sessions(pgbouncer_url: str, postgres_schema: str) -> None:
    async with (
        open_postgres(pgbouncer_url, schema=postgres_schema, pooler="transaction") as one,
        open_postgres(pgbouncer_url, schema=postgres_schema, pooler="transaction") as other,
    ):
        added = await asyncio.gather(
            *(
                storage.tasks.add([a_task(key=f"k-{number}")])
                for number in range(200)
                for storage in (one, other)
            )
        )
        claimed = await asyncio.gather(
            *(
                storage.tasks.claim(
                    a_demand(grants=[a_lease(f"{number}-{index}") for index in range(5)]), now=NOON
                )
                for number in range(25)
                for storage, index in ((one, 0), (other, 1))
            )
        )

    ids = [task.id for found in claimed for task in found.tasks]
    assert len(added) == 400
    assert len(ids) == len(set(ids)) == 200


def test_a_schema_is_migrated_through_pgbouncer(
    pgbouncer_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    storage = ("--storage", pgbouncer_url, "--schema", postgres_schema, "--json")

    with ThreadPoolExecutor(4) as pool:
        runs = list(pool.map(lambda _: run_leaseq("migrate", *storage, cwd=tmp_path), range(4)))

    applied = [json.loads(run.stdout)["applied"] for run in runs]
    assert sorted(map(bool, applied)) == [False, False, False, True]


def test_settings_of_the_session_are_what_pgbouncer_refuses(
    pgbouncer_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    with leaseq_server(
        *("--storage", pgbouncer_url, "--schema", postgres_schema, "--storage-wait", "0s"),
        cwd=tmp_path,
    ) as server:
        code = server.ended()

    assert code == 1
    assert "options" in server.log
