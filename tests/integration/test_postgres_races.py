from __future__ import annotations

import asyncio
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import psycopg
import pytest

from leaseq.adapters.postgres import open_postgres
from leaseq.adapters.postgres.connections import Bounds
from leaseq.domain import lifecycle
from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.ids import LeaseToken, TaskType
from leaseq.domain.storing import Added, Change, PruneRule, Replaced
from leaseq.domain.task import Dead, Leased, Status, Task
from leaseq.testing import NOON, RESIZE, SEND, a_demand, a_lease, a_task, some_grants
from postgres_fixtures import PostgresFixtures, connected

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from leaseq.domain.ports import Storage, TaskRepository
    from leaseq.testing import Connect


T = TypeVar("T")

WAITERS = """
    SELECT FROM pg_stat_activity
    WHERE application_name = 'leaseq' AND datname = current_database() AND wait_event_type = 'Lock'
"""


class Rivalled(PostgresFixtures):
    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str) -> Connect:
        bounds = Bounds(lock=timedelta(seconds=1))
        return partial(open_postgres, postgres_url, schema=postgres_schema, bounds=bounds)

    @pytest.fixture
    def rival(
        self, tables: psycopg.Connection, postgres_url: str, postgres_schema: str
    ) -> Iterator[psycopg.Connection]:
        """Give somebody who has begun a transaction."""
        del tables  # made before
        with connected(postgres_url, postgres_schema) as connection:
            connection.execute("BEGIN")
            yield connection


class TestKeyRaces(Rivalled):
    async def test_a_winner_that_commits_holds_the_key(
        self, tasks: TaskRepository, tables: psycopg.Connection, rival: psycopg.Connection
    ) -> None:
        winner, loser = a_task(key="k"), a_task(key="k")
        insert(rival, winner)
        adding = await waiting(tasks.add([loser]), tables)

        rival.execute("COMMIT")

        [answer] = await adding
        assert isinstance(answer, Task)
        assert answer.id == winner.id

    async def test_after_a_winner_that_rolls_back_the_next_is_stored(
        self, tasks: TaskRepository, tables: psycopg.Connection, rival: psycopg.Connection
    ) -> None:
        loser = a_task(key="k")
        insert(rival, a_task(key="k"))
        adding = await waiting(tasks.add([loser]), tables)

        rival.execute("ROLLBACK")

        assert await adding == [Added.STORED]

    async def test_a_key_that_is_freed_meanwhile_goes_to_the_next(
        self, tasks: TaskRepository, tables: psycopg.Connection, rival: psycopg.Connection
    ) -> None:
        holder, next_ = a_task(key="k", state=Dead(at=NOON)), a_task(key="k")
        await tasks.add([holder])
        rival.execute("DELETE FROM tasks")
        adding = await waiting(tasks.add([next_]), tables)

        rival.execute("COMMIT")

        assert await adding == [Added.STORED]

    async def test_a_winner_that_takes_too_long_is_no_reason_to_wait_for_ever(
        self, tasks: TaskRepository, rival: psycopg.Connection
    ) -> None:
        plain, loser = a_task(), a_task(key="k")
        insert(rival, a_task(key="k"))

        with pytest.raises(StorageUnavailableError):
            await tasks.add([plain, loser])

        rival.execute("ROLLBACK")
        assert await tasks.add([plain, loser]) == [Added.STORED, Added.STORED]


class TestRowRaces(Rivalled):
    async def test_a_row_that_somebody_holds_is_busy_and_the_others_are_changed(
        self, tasks: TaskRepository, rival: psycopg.Connection
    ) -> None:
        held, free, gone = a_task(), a_task(), a_task()
        await tasks.add([held, free])
        rival.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", (held.id,))
        changes = [Change(old=task, new=dead(task)) for task in (held, free, gone)]

        outcomes = await tasks.replace(changes)

        assert outcomes == [Replaced.BUSY, Replaced.DONE, Replaced.STALE]
        rival.execute("ROLLBACK")
        assert await tasks.replace(changes) == [Replaced.DONE, Replaced.STALE, Replaced.STALE]

    async def test_a_row_that_is_being_changed_is_busy_and_then_stale(
        self, tasks: TaskRepository, rival: psycopg.Connection
    ) -> None:
        task = a_task()
        await tasks.add([task])
        rival.execute("UPDATE tasks SET version = version + 1")
        change = Change(old=task, new=dead(task))

        during = await tasks.replace([change])
        rival.execute("COMMIT")
        after = await tasks.replace([change])

        assert (during, after) == ([Replaced.BUSY], [Replaced.STALE])

    async def test_a_lease_that_somebody_holds_cannot_be_renewed_for_the_moment(
        self, tasks: TaskRepository, rival: psycopg.Connection
    ) -> None:
        task = a_task(state=Leased(lease=a_lease()))
        await tasks.add([task])
        rival.execute("SELECT FROM tasks FOR UPDATE")
        renewed = lifecycle.heartbeat(
            task, token=LeaseToken("lease-1"), duration=timedelta(hours=1), now=NOON
        )

        during = await tasks.replace([Change(old=task, new=renewed)])
        rival.execute("ROLLBACK")
        after = await tasks.replace([Change(old=task, new=renewed)])

        assert (during, after) == ([Replaced.BUSY], [Replaced.DONE])

    async def test_a_row_that_somebody_holds_is_not_deleted(
        self, tasks: TaskRepository, rival: psycopg.Connection
    ) -> None:
        held, free = (a_task(state=Dead(at=NOON)) for _ in range(2))
        await tasks.add([held, free])
        rival.execute("SELECT FROM tasks WHERE id = %s FOR UPDATE", (held.id,))

        outcomes = await tasks.delete([held, free])

        assert outcomes == [Replaced.BUSY, Replaced.DONE]

    @pytest.mark.parametrize("types", [(), (SEND,), (SEND, RESIZE)], ids=["any", "one", "two"])
    async def test_a_claim_fills_up_behind_what_somebody_holds(
        self, tasks: TaskRepository, rival: psycopg.Connection, types: tuple[TaskType, ...]
    ) -> None:
        stored = [a_task() for _ in range(12)]
        await tasks.add(stored)
        rival.execute("SELECT FROM tasks ORDER BY id LIMIT 5 FOR UPDATE")

        found = await tasks.claim(a_demand(types=types, grants=some_grants(5)), now=NOON)

        ids = [task.id for task in sorted(stored, key=lambda task: task.id)]
        assert [task.id for task in found.tasks] == ids[5:10]

    async def test_pruning_passes_over_what_somebody_holds(
        self, storage: Storage, rival: psycopg.Connection
    ) -> None:
        await storage.tasks.add([a_task(state=Dead(at=NOON)) for _ in range(3)])
        rival.execute("SELECT FROM tasks LIMIT 1 FOR UPDATE")
        rule = PruneRule(status=Status.DEAD, finished_before=NOON + timedelta(seconds=1))

        assert await storage.tasks.prune([rule], limit=10) == 2

    async def test_many_claimers_lease_each_task_once_and_leave_none(
        self, storage: Storage, connect: Connect
    ) -> None:
        stored = [a_task() for _ in range(2000)]
        await storage.tasks.add(stored[:1000])
        await storage.tasks.add(stored[1000:])
        leased: Counter[str] = Counter()

        async def work(tasks: TaskRepository, types: tuple[TaskType, ...]) -> None:
            empty = 0
            while empty < 3:
                found = await tasks.claim(a_demand(types=types, grants=some_grants(7)), now=NOON)
                leased.update(task.id for task in found.tasks)
                empty = 0 if found.tasks else empty + 1

        async with connect() as other:
            await asyncio.gather(
                *(
                    work(each.tasks, types)
                    for each in (storage, other)
                    for types in ((), (), (SEND,), (SEND, RESIZE))
                )
            )

        assert leased == Counter(task.id for task in stored)


def dead(task: Task) -> Task:
    return attrs.evolve(task, state=Dead(at=NOON), version=task.version + 1)


def insert(connection: psycopg.Connection, task: Task) -> None:
    connection.execute(
        "INSERT INTO tasks (id, queue, type, payload, idempotency_key)"
        " VALUES (%s, %s, %s, '{}', %s)",
        (task.id, task.queue, task.type, task.idempotency_key),
    )


async def waiting(work: Coroutine[Any, Any, T], observer: psycopg.Connection) -> asyncio.Task[T]:
    """Start `work` and return when it waits for a lock."""
    started = asyncio.create_task(work)
    async with asyncio.timeout(5):
        while not observer.execute(WAITERS).rowcount:
            assert not started.done()
            await asyncio.sleep(0.01)
    return started
