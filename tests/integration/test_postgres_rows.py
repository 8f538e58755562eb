from __future__ import annotations

import asyncio
import random
from datetime import timedelta
from typing import TYPE_CHECKING, LiteralString

import attrs
import pytest
from psycopg import sql

from leaseq.domain import lifecycle
from leaseq.domain.errors import StorageError, UnreadableTaskError
from leaseq.domain.ids import JsonText, LeaseToken, TaskId, TaskType, WorkerId
from leaseq.domain.json_text import normalise
from leaseq.domain.storing import Added, Change, Found, PruneRule, Queue, Replaced, Selection
from leaseq.domain.task import Dead, Leased, Status, Succeeded, Task, TaskError, unreadable_row
from leaseq.testing import (
    EMAILS,
    IMAGES,
    MINUTE,
    NOON,
    RESIZE,
    SECOND,
    SEND,
    a_demand,
    a_lease,
    a_task,
    an_error,
    leased_until,
    some_grants,
)
from leaseq.testing.conformance.claim import ClaimContract
from leaseq.testing.conformance.claim_choice import ClaimBytesContract, ClaimFilterContract
from postgres_fixtures import PostgresFixtures

if TYPE_CHECKING:
    from datetime import datetime

    import psycopg

    from leaseq.domain.ports import Storage, TaskRepository
    from leaseq.testing import Connect

HOUR = timedelta(hours=1)
REAPER = WorkerId("leaseq.reaper")

# What somebody did to the row of a task with psql, after taking the CHECKs away.
BROKEN = {
    "due at the end of time": "run_after = 'infinity', status = 'queued'",
    "due before all time": "run_after = '-infinity'",
    "due in the year 30000": "run_after = '30000-01-01'",
    "due before Christ": "run_after = '0044-03-15 BC'",
    "made at the end of time": "created_at = 'infinity'",
    "changed in the year 10000": "updated_at = '10000-02-01'",
    "no such retry policy": "retry_base_us = 1",
    "a base beyond all caps": "retry_base_us = 9000000000000000",
    "a cap below the base": "retry_cap_us = 5",
    "a cap beyond all": "retry_cap_us = 9000000000000000",
    "errors that are no array": "errors = '{}'",
    "errors that are something else": "errors = '[1]'",
    "an error without its time": 'errors = \'[{"attempt": 1, "message": "?"}]\'',
    "settled in no known way": "settled_token = 't', settled_as = 'shrug'",
}


def json_value(luck: random.Random, depth: int) -> str:
    """Return some JSON, spelt in some way."""
    blank = luck.choice(["", "", " ", "\n\t"])
    kind = luck.randrange(8 if depth else 6)
    if kind == 0:
        return luck.choice(["null", "true", "false"]) + blank
    if kind == 1:
        return str(luck.randrange(-(10 ** luck.randrange(1, 40)), 10**20)) + blank
    if kind == 2:
        return f"{luck.uniform(-1, 1) * 10 ** luck.randrange(-30, 30)!r}{blank}"
    if kind == 3:
        whole, part = luck.randrange(1000), luck.randrange(10**6)
        return (
            f"{luck.choice(['', '-'])}{whole}.{part:06}{luck.choice(['', 'e', 'E+', 'e-'])}".rstrip(
                "eE+-"
            )
            + luck.choice(["", "e3", "E-7", "e+12"])
        )
    if kind in {4, 5}:
        return text_value(luck)
    if kind == 6:
        return "[" + ",".join(json_value(luck, depth - 1) for _ in range(luck.randrange(4))) + "]"
    items = (
        f"{text_value(luck)}{blank}:{blank}{json_value(luck, depth - 1)}"
        for _ in range(luck.randrange(5))
    )
    return "{" + f",{blank}".join(items) + "}"


def text_value(luck: random.Random) -> str:
    """Return a JSON string of letters, escapes and characters from everywhere."""
    parts = [
        luck.choice("abAB \u00e9e\u0301\u6771\u2028\U0001f98a/'%$")
        if luck.random() < 0.7
        else luck.choice(
            [r"\n", r"\"", r"\\", r"\/", r"\u00e9", r"\ud83e\udd8a", r"\u0001", r"\u007f", r"\b"]
        )
        for _ in range(luck.randrange(8))
    ]
    return '"' + "".join(parts) + '"'


class TestJson(PostgresFixtures):
    @pytest.mark.parametrize("seed", range(5))
    async def test_json_comes_back_in_the_very_spelling_that_the_domain_gave_it(
        self, tasks: TaskRepository, seed: int
    ) -> None:
        luck = random.Random(seed)  # noqa: S311
        texts = [normalise(json_value(luck, 4)) for _ in range(400)]
        stored = [
            a_task(payload=f'{{"k": {text}}}', state=Succeeded(at=NOON, result=text), attempts=1)
            for text in texts
        ]

        await tasks.add(stored)

        found = await tasks.load([task.id for task in stored], with_payload=True)
        assert sorted(found.tasks, key=_by_id) == sorted(stored, key=_by_id)

    async def test_a_result_comes_back_in_the_very_spelling_that_the_domain_gave_it(
        self, tasks: TaskRepository
    ) -> None:
        luck = random.Random(7)  # noqa: S311
        olds = [a_task(state=leased_until(NOON + HOUR)) for _ in range(400)]
        changes = [
            Change(
                old=old,
                new=lifecycle.complete(
                    old,
                    token=LeaseToken("lease-1"),
                    result=normalise(json_value(luck, 4)),
                    now=NOON,
                ),
            )
            for old in olds
        ]
        await tasks.add(olds)

        await tasks.replace(changes)

        found = await tasks.load([old.id for old in olds], with_payload=True)
        assert sorted(found.tasks, key=_by_id) == sorted(
            (change.new for change in changes), key=_by_id
        )

    async def test_what_is_no_json_costs_its_own_task_only(self, tasks: TaskRepository) -> None:
        good = [a_task(key=f"k-{number}") for number in range(3)]
        bad = [
            attrs.evolve(a_task(), payload=JsonText("{")),
            attrs.evolve(a_task(), payload=JsonText('{"a": "\\u0000"}')),
            attrs.evolve(a_task(), payload=JsonText('{"a": "\ud800"}')),
            attrs.evolve(a_task(), payload=JsonText('{"a": "\x00"}')),
            attrs.evolve(a_task(), payload=JsonText("[]")),
        ]

        outcomes = await tasks.add([good[0], *bad, good[1], good[2]])

        assert [type(outcome) for outcome in outcomes[1:6]] == [StorageError] * 5
        assert [outcomes[0], *outcomes[6:]] == [Added.STORED] * 3
        listed = await tasks.search(Selection(), limit=9, with_payload=False)
        assert {task.id for task in listed.tasks} == {task.id for task in good}


class TestUnreadableRows(PostgresFixtures):
    @pytest.fixture(autouse=True)
    def _without_checks(self, tables: psycopg.Connection) -> None:
        checks = tables.execute(
            "SELECT conname FROM pg_constraint WHERE conrelid = 'tasks'::regclass AND contype = 'c'"
        ).fetchall()
        for (check,) in checks:
            tables.execute(f'ALTER TABLE tasks DROP CONSTRAINT "{check}"'.encode())

    @pytest.mark.parametrize("damage", BROKEN.values(), ids=BROKEN.keys())
    async def test_a_broken_row_is_told_alone_and_set_aside_so_that_it_can_be_seen(
        self, tasks: TaskRepository, tables: psycopg.Connection, damage: str
    ) -> None:
        broken, sound = a_task(), a_task()
        await tasks.add([broken, sound])
        tables.execute(f"UPDATE tasks SET {damage} WHERE id = %s".encode(), (broken.id,))  # noqa: S608

        loaded = await tasks.load([broken.id, sound.id], with_payload=True)
        listed = await tasks.search(Selection(), limit=9, with_payload=False)
        claimed = await tasks.claim(a_demand(grants=some_grants(5)), now=NOON)
        await tasks.quarantine([broken.id], unreadable_row(REAPER, now=NOON), now=NOON)
        after = await tasks.load([broken.id], with_payload=True)

        assert (loaded.tasks, loaded.unreadable) == ((sound,), (broken.id,))
        assert listed.unreadable == (broken.id,)
        # A claim may mend a row, by setting what was broken; else the row is told, and not lost.
        assert sound.id in {task.id for task in claimed.tasks}
        [mended] = after.tasks
        assert mended.state == Dead(at=NOON)
        assert mended.errors == (unreadable_row(REAPER, now=NOON),)

    async def test_a_lease_that_ends_never_is_unreadable(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        task = a_task(state=leased_until(NOON))
        await tasks.add([task])
        tables.execute("UPDATE tasks SET lease_expires_at = 'infinity'")

        assert (await tasks.load([task.id], with_payload=False)).unreadable == (task.id,)

    async def test_a_lease_without_its_token_or_end_is_unreadable(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        ended, endless = (a_task(state=leased_until(NOON)) for _ in range(2))
        await tasks.add([ended, endless])
        tables.execute("UPDATE tasks SET lease_token = NULL WHERE id = %s", (ended.id,))
        tables.execute("UPDATE tasks SET lease_expires_at = NULL WHERE id = %s", (endless.id,))

        found = await tasks.load([ended.id, endless.id], with_payload=False)
        expired = await tasks.expired(now=NOON, limit=9)

        assert set(found.unreadable) == {ended.id, endless.id}
        assert expired.unreadable == (ended.id,)

    async def test_a_status_that_is_none_is_unreadable_and_neither_leased_nor_counted(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        task = a_task()
        await tasks.add([task])
        tables.execute("UPDATE tasks SET status = 'lost'")

        assert (await tasks.load([task.id], with_payload=False)).unreadable == (task.id,)
        assert not (await tasks.claim(a_demand(), now=NOON)).tasks
        assert await tasks.stats(now=NOON) == []

    async def test_a_key_whose_holder_is_broken_costs_its_own_task_only(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        broken, late, other = a_task(key="k"), a_task(key="k"), a_task(key="other")
        await tasks.add([broken])
        tables.execute("UPDATE tasks SET run_after = 'infinity'")

        [refusal, outcome] = await tasks.add([late, other])

        assert isinstance(refusal, UnreadableTaskError)
        assert refusal.task_id == broken.id
        assert outcome is Added.STORED

    async def test_a_queue_whose_oldest_is_broken_is_still_counted(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        await tasks.add([a_task()])
        tables.execute("UPDATE tasks SET run_after = '-infinity'")

        [queue] = await tasks.stats(now=NOON)

        assert queue.depths[Status.QUEUED].count == 1
        assert queue.oldest_due_since is None


class RefusedRows(PostgresFixtures):
    """An operator's trigger refuses what has a priority, of 66 or as is said."""

    def refuse(
        self, tables: psycopg.Connection, event: LiteralString, *, priority: int = 66
    ) -> None:
        tables.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RAISE EXCEPTION 'payload %', (COALESCE(NEW, OLD)).payload; END $$"
        )
        tables.execute(
            sql.SQL(
                "CREATE TRIGGER refuse BEFORE {} ON tasks FOR EACH ROW"
                " WHEN ({}.priority = {}) EXECUTE FUNCTION refuse()"
            ).format(
                sql.SQL(event),
                sql.SQL("OLD" if event == "DELETE" else "NEW"),
                sql.Literal(priority),
            )
        )


class TestClaimsPastRefusedRows(
    RefusedRows, ClaimContract, ClaimFilterContract, ClaimBytesContract
):
    """What holds of a claim holds where no claim can do without leasing rows one by one."""

    @pytest.fixture(autouse=True)
    async def _refused(self, tasks: TaskRepository, tables: psycopg.Connection) -> None:
        tables.execute("ALTER TABLE tasks DROP CONSTRAINT tasks_priority_is_in_range")
        in_front = [
            a_task(queue=queue, type=t) for queue in (EMAILS, IMAGES) for t in (SEND, RESIZE)
        ]
        await tasks.add([attrs.evolve(task, priority=256) for task in in_front])
        self.refuse(tables, "UPDATE", priority=256)

    async def test_a_thousand_are_leased_in_one_claim(self, tasks: TaskRepository) -> None:
        """One by one, it is fifty."""
        stored = [a_task() for _ in range(60)]
        await tasks.add(stored)

        found = await tasks.claim(a_demand(grants=some_grants(60)), now=NOON)

        assert [task.id for task in found.tasks] == [task.id for task in stored[:50]]


class TestRefusedRows(RefusedRows):
    async def test_a_refused_change_costs_nobody_else_anything(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        self.refuse(tables, "UPDATE")
        olds = [
            a_task(state=leased_until(NOON), priority=66 if number == 5 else 0)
            for number in range(20)
        ]
        await tasks.add(olds)
        changes = [Change(old=old, new=lifecycle.expire(old, jitter=0.0, now=NOON)) for old in olds]

        outcomes = await tasks.replace(changes)

        refusal = outcomes[5]
        assert isinstance(refusal, StorageError)
        assert "payload" not in str(refusal)
        assert [*outcomes[:5], *outcomes[6:]] == [Replaced.DONE] * 19

    async def test_a_refused_task_costs_nobody_else_anything(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        self.refuse(tables, "INSERT")
        refused, fine = a_task(priority=66), a_task()

        outcomes = await tasks.add([refused, fine])

        assert isinstance(outcomes[0], StorageError)
        assert outcomes[1] is Added.STORED

    @pytest.mark.parametrize("types", [(), (SEND, RESIZE)], ids=["any", "two types"])
    async def test_a_row_that_cannot_be_leased_does_not_stop_its_queue(
        self, tasks: TaskRepository, tables: psycopg.Connection, types: tuple[TaskType, ...]
    ) -> None:
        refused = [a_task(priority=66) for _ in range(3)]
        fine = [a_task(payload=f'{{"n": {number}}}') for number in range(10)]
        await tasks.add([*refused, *fine])
        self.refuse(tables, "UPDATE")
        grants = some_grants(8)

        found = await tasks.claim(a_demand(types=types, grants=grants), now=NOON)
        rest = await tasks.claim(
            a_demand(types=types, grants=some_grants(8), max_bytes=8), now=NOON
        )

        in_order = sorted(fine, key=_by_id)
        assert list(found.tasks) == [
            lifecycle.lease(task, grant=grant, now=NOON)
            for task, grant in zip(in_order, grants, strict=False)
        ]
        assert [task.id for task in rest.tasks] == [in_order[8].id]

    async def test_a_paused_queue_stays_paused_when_a_row_is_refused(
        self, storage: Storage, tables: psycopg.Connection
    ) -> None:
        await storage.tasks.add([a_task(priority=66), a_task()])
        self.refuse(tables, "UPDATE")
        await storage.queues.replace(Queue(name=EMAILS), Queue(name=EMAILS, paused=True, version=1))

        assert await storage.tasks.claim(a_demand(grants=some_grants(5)), now=NOON) == Found()

    async def test_a_row_that_cannot_be_set_aside_is_logged_and_left(
        self,
        tasks: TaskRepository,
        tables: psycopg.Connection,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        refused, fine = a_task(priority=66), a_task()
        await tasks.add([refused, fine])
        self.refuse(tables, "UPDATE")

        await tasks.quarantine([refused.id, fine.id], unreadable_row(REAPER, now=NOON), now=NOON)

        found = await tasks.load([refused.id, fine.id], with_payload=False)
        statuses = {task.id: task.status for task in found.tasks}
        assert statuses == {refused.id: Status.QUEUED, fine.id: Status.DEAD}
        assert "cannot be set aside" in caplog.text

    async def test_rows_that_cannot_be_deleted_are_left_and_others_go(
        self, tasks: TaskRepository, tables: psycopg.Connection
    ) -> None:
        refused, fine, old = (
            a_task(priority=priority, state=Dead(at=NOON)) for priority in (66, 0, 0)
        )
        await tasks.add([refused, fine, old])
        self.refuse(tables, "DELETE")
        rule = PruneRule(status=Status.DEAD, finished_before=NOON + SECOND)

        deleted = await tasks.delete([refused, fine])
        pruned = await tasks.prune([rule], limit=10)

        assert deleted == [Replaced.BUSY, Replaced.DONE]
        assert pruned == 1
        left = await tasks.search(Selection(), limit=10, with_payload=False)
        assert [task.id for task in left.tasks] == [refused.id]


class TestHeartbeats(PostgresFixtures):
    async def test_heartbeats_change_no_index_and_leave_long_histories_alone(
        self, connect: Connect, tables: psycopg.Connection
    ) -> None:
        history = [an_error("x" * 8000, traceback="y" * 8000) for _ in range(10)]
        stored = [a_task(errors=history if number % 50 == 0 else ()) for number in range(200)]
        # A session tells what it has done when it ends.
        async with connect() as storage:
            await storage.tasks.add(stored)
            grants = some_grants(200, until=NOON + HOUR)
            leased = (await storage.tasks.claim(a_demand(grants=grants), now=NOON)).tasks
            # The first beats of many neighbours find little room in their pages, and spread them.
            first = [_beat(old, now=NOON + SECOND) for old in leased]
            await storage.tasks.replace(first)
        tables.execute("VACUUM tasks")
        before = await _counted(tables, updates=400)
        leased = tuple(beat.new for beat in first)

        async with connect() as storage:
            for minute in range(1, 6):
                beats = [_beat(old, now=NOON + minute * MINUTE) for old in leased]
                assert await storage.tasks.replace(beats) == [Replaced.DONE] * 200
                leased = tuple(beat.new for beat in beats)

        updated, hot, written_apart = (
            after - earlier
            for after, earlier in zip(await _counted(tables, updates=1400), before, strict=True)
        )
        assert updated == 1000
        assert hot >= 0.95 * updated
        assert written_apart == 0

    async def test_a_cancel_request_is_told_by_a_heartbeat(self, tasks: TaskRepository) -> None:
        task = a_task(state=leased_until(NOON + HOUR))
        cancelled = lifecycle.cancel(task, now=NOON)
        await tasks.add([task])

        await tasks.replace([Change(old=task, new=cancelled)])

        found = await tasks.load([task.id], with_payload=True)
        assert found.tasks == (cancelled,)

    async def test_a_failure_keeps_the_errors_that_were_there(self, tasks: TaskRepository) -> None:
        first = a_task(state=leased_until(NOON + HOUR), errors=[an_error("one")])
        second = lifecycle.fail(
            first, token=LeaseToken("lease-1"), error=TaskError(message="two"), jitter=0.5, now=NOON
        )
        third = attrs.evolve(second, state=Leased(lease=a_lease("lease-2")), version=9)
        await tasks.add([first])

        await tasks.replace([Change(old=first, new=second)])
        await tasks.replace([Change(old=second, new=third)])

        found = await tasks.load([first.id], with_payload=True)
        assert found.tasks == (third,)
        assert [error.message for error in found.tasks[0].errors] == ["one", "two"]


def _beat(task: Task, *, now: datetime) -> Change:
    assert isinstance(task.state, Leased)
    token = task.state.lease.token
    return Change(old=task, new=lifecycle.heartbeat(task, token=token, duration=HOUR, now=now))


def _by_id(task: Task) -> TaskId:
    return task.id


async def _counted(tables: psycopg.Connection, *, updates: int) -> tuple[int, int, int]:
    """Return how many rows were updated, how many HOT, and how many parts were written apart."""
    # A session tells it when it ends, which is a moment after its client has left.
    async with asyncio.timeout(10):
        while True:
            row = tables.execute(
                "SELECT s.n_tup_upd, s.n_tup_hot_upd, t.n_tup_ins FROM pg_class AS c"
                " JOIN pg_stat_all_tables AS s ON s.relid = c.oid"
                " JOIN pg_stat_all_tables AS t ON t.relid = c.reltoastrelid"
                " WHERE c.oid = 'tasks'::regclass"
            ).fetchone()
            if row is not None and row[0] >= updates:
                return row[0], row[1], row[2]
            await asyncio.sleep(0.02)
