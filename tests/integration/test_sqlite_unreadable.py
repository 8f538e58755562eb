"""Rows that no leaseq wrote: each is told alone and set aside, and stands in nobody's way."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from leaseq.adapters.sqlite import SqliteStorage, open_sqlite
from leaseq.domain.errors import StorageError, UnreadableTaskError
from leaseq.domain.ids import TaskId
from leaseq.domain.storing import Added, Change, Found, PruneRule, Replaced, Selection
from leaseq.domain.task import Dead, Queued, Status
from leaseq.testing import (
    EMAILS,
    NOON,
    SECOND,
    a_demand,
    a_task,
    a_task_id,
    an_error,
    leased_until,
    some_grants,
)
from leaseq.testing.conformance.replace import changed, stored
from leaseq.testing.conformance.round_trip import without_payload

_ERROR: Final = '{"attempt": 1, "worker_id": "w", "type": "E", "message": "", "traceback": ""'

# What is made of the row of a queued task, by an UPDATE that no CHECK looks at.
GARBAGE: Final = {
    "errors that are no JSON": "errors = 'oops'",
    "errors that are no array": "errors = '{}'",
    "errors of the wrong kind": "errors = '[1]'",
    "an error without a time": f"errors = '[{_ERROR}}}]'",
    "an error at no time": f"""errors = '[{_ERROR}, "at": "noon"}}]'""",
    "an error at a local time": f"""errors = '[{_ERROR}, "at": "2026-03-14T12:00:00"}}]'""",
    "errors nested without end": f"errors = '{'[' * 100_000}'",
    "errors in no known encoding": "errors = CAST(x'ff' AS TEXT)",
    "a type in no known encoding": "type = CAST(x'c3' AS TEXT)",
    "a key in no known encoding": "idempotency_key = CAST(x'c3' AS TEXT)",
    "a payload in no known encoding": "payload = CAST(x'7b22c3227d' AS TEXT)",
    "an id that is no UUID": "id = '-by hand'",
    "an id in no known encoding": "id = CAST(x'00fffe' AS TEXT)",
    "due before time began": "run_after = -9223372036854775808",
    "created after time ended": "created_at = 9223372036854775807",
    "attempts beyond reason": "attempts = 9223372036854775807",
    "attempts below zero": "max_attempts = -1",
    "a version that cannot rise": "version = 9223372036854775807",
    "a lease number that cannot rise": "lease_number = 9223372036854775807",
    "a wait of no time": "retry_base_us = 0",
    "a wait of centuries": "retry_cap_us = 9223372036854775807",
    "settled in an unknown way": "settled_token = 'T', settled_as = 'lost'",
    "settled in no way": "settled_token = 'T'",
    "a size below zero": "payload_bytes = -1",
}
every_garbage = pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE.keys())


@every_garbage
async def test_a_claim_passes_it_over(storage: SqliteStorage, path: Path, garbage: str) -> None:
    others = [a_task(), a_task()]
    await storage.tasks.add([a_task(id=a_task_id(1)), *others])
    broken = _spoil(path, garbage)

    found = await storage.tasks.claim(a_demand(grants=some_grants(2)), now=NOON)

    assert [task.id for task in found.tasks] == [task.id for task in others]
    assert [task.lease_number for task in found.tasks] == [1, 1]
    assert found.unreadable == (broken,)


@every_garbage
async def test_it_can_be_set_aside_and_is_pruned_in_the_end(
    storage: SqliteStorage, path: Path, garbage: str
) -> None:
    await storage.tasks.add([a_task(id=a_task_id(1), version=3), a_task()])
    _spoil(path, garbage)
    found = await storage.tasks.claim(a_demand(), now=NOON)

    await storage.tasks.quarantine(found.unreadable, an_error(), now=NOON)

    assert (await storage.tasks.claim(a_demand(), now=NOON)).unreadable == ()
    rule = PruneRule(status=Status.DEAD, finished_before=NOON + SECOND)
    assert await storage.tasks.prune([rule], limit=10) == 1


@every_garbage
async def test_an_operator_still_sees_the_others(
    storage: SqliteStorage, path: Path, garbage: str
) -> None:
    other = a_task()
    await storage.tasks.add([a_task(id=a_task_id(1)), other])
    broken = _spoil(path, garbage)

    for selection in (Selection(), Selection(queue=EMAILS), Selection(statuses=(Status.QUEUED,))):
        listed = await storage.tasks.search(selection, limit=10, with_payload=True)
        assert listed == Found(tasks=(other,), unreadable=(broken,))
    [depths] = await storage.tasks.stats(now=NOON)
    assert depths.depths[Status.QUEUED].count == 2
    assert depths.oldest_due_since == NOON
    assert await storage.tasks.next_due([EMAILS], [], now=NOON) is None


async def test_it_is_loaded_as_unreadable_and_the_others_as_they_are(
    storage: SqliteStorage, path: Path
) -> None:
    broken, other = a_task(id=a_task_id(1)), a_task()
    await storage.tasks.add([broken, other])
    _spoil(path, "errors = 'oops'")

    found = await storage.tasks.load([other.id, broken.id], with_payload=True)

    assert found == Found(tasks=(other,), unreadable=(broken.id,))


async def test_set_aside_it_can_be_read_where_the_error_took_the_place_of_the_damage(
    storage: SqliteStorage, path: Path
) -> None:
    broken = a_task(id=a_task_id(1), version=3)
    await storage.tasks.add([broken])
    _spoil(path, "errors = 'oops'")

    await storage.tasks.quarantine([broken.id], an_error("unreadable"), now=NOON)

    [dead] = await stored(storage.tasks, [broken])
    assert (dead.state, dead.errors) == (Dead(at=NOON), (an_error("unreadable"),))


async def test_a_lease_that_cannot_be_read_is_told_among_the_expired(
    storage: SqliteStorage, path: Path
) -> None:
    broken, other = (a_task(state=leased_until(NOON), lease_number=1) for _ in range(2))
    await storage.tasks.add([broken, other])
    _spoil(path, "lease_owner = CAST(x'ff' AS TEXT)")

    found = await storage.tasks.expired(now=NOON, limit=10)

    assert found == Found(tasks=(without_payload(other),), unreadable=(broken.id,))


async def test_a_key_whose_holder_cannot_be_read_costs_nobody_else_anything(
    storage: SqliteStorage, path: Path
) -> None:
    holder, late, other = a_task(id=a_task_id(1), key="k"), a_task(key="k"), a_task()
    await storage.tasks.add([holder])
    _spoil(path, "errors = 'oops'")

    refused, stored_ = await storage.tasks.add([late, other])

    assert isinstance(refused, UnreadableTaskError)
    assert refused.task_id == holder.id
    assert stored_ is Added.STORED


async def test_an_unknown_status_is_unreadable(storage: SqliteStorage, path: Path) -> None:
    task = a_task()
    await storage.tasks.add([task])
    _spoil(path, "status = 'running'")

    found = await storage.tasks.load([task.id], with_payload=True)

    assert found == Found(unreadable=(task.id,))


async def test_a_task_for_a_time_that_never_comes_hides_no_other(
    storage: SqliteStorage, path: Path
) -> None:
    await storage.tasks.add([a_task(id=a_task_id(1)), a_task(run_after=NOON + SECOND)])
    _spoil(path, "run_after = 9223372036854775807")

    assert await storage.tasks.next_due([EMAILS], [], now=NOON) == NOON + SECOND
    assert await storage.tasks.claim(a_demand(), now=NOON) == Found()


async def test_a_task_that_a_trigger_refuses_to_lease_does_not_stop_the_others(
    storage: SqliteStorage, path: Path
) -> None:
    tasks = [a_task() for _ in range(1000)]
    await storage.tasks.add(tasks)
    _refuse_updates(path, tasks[2].id)

    found = await storage.tasks.claim(a_demand(grants=some_grants(1000)), now=NOON)

    assert [task.id for task in found.tasks] == [t.id for t in tasks if t is not tasks[2]]
    assert found.unreadable == (tasks[2].id,)
    assert await stored(storage.tasks, tasks) == sorted(
        [*found.tasks, tasks[2]], key=lambda task: task.id
    )


async def test_a_change_that_a_trigger_refuses_is_refused_alone(
    storage: SqliteStorage, path: Path
) -> None:
    tasks = [a_task() for _ in range(3)]
    await storage.tasks.add(tasks)
    _refuse_updates(path, tasks[1].id)

    outcomes = await storage.tasks.replace(
        [Change(old=task, new=changed(task, Dead(at=NOON))) for task in tasks]
    )
    await storage.tasks.quarantine([tasks[1].id], an_error(), now=NOON)

    assert [outcomes[0], outcomes[2]] == [Replaced.DONE] * 2
    assert isinstance(outcomes[1], StorageError)
    assert "not this one" in str(outcomes[1])
    assert [task.state for task in await stored(storage.tasks, tasks)] == [
        Dead(at=NOON),
        Queued(),
        Dead(at=NOON),
    ]


@pytest.mark.parametrize(
    "refused",
    [
        a_task(priority=256),
        a_task(max_attempts=2**63),
        a_task(key="\ud800"),
        a_task(errors=[an_error("\udfff")]),
    ],
    ids=["a broken rule", "a number too large", "a key that is no text", "an error that is none"],
)
async def test_a_task_that_cannot_be_stored_is_refused_alone(
    storage: SqliteStorage, refused: object
) -> None:
    assert isinstance(refused, type(a_task()))
    others = [a_task(), a_task()]

    outcomes = await storage.tasks.add([others[0], refused, others[1]])

    assert [outcomes[0], outcomes[2]] == [Added.STORED] * 2
    assert isinstance(outcomes[1], StorageError)
    assert await stored(storage.tasks, others) == others


def _spoil(path: Path, garbage: str) -> TaskId:
    """Make garbage of the row with the least id, and return the id as it is told."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(
            f"UPDATE tasks SET {garbage} WHERE id = (SELECT min(id) FROM tasks)"  # noqa: S608
        )
        rowid = connection.execute("SELECT rowid FROM tasks ORDER BY id LIMIT 1").fetchone()[0]
        connection.text_factory = bytes
        id_: Any = connection.execute("SELECT id FROM tasks WHERE rowid = ?", (rowid,)).fetchone()
    return TaskId(id_[0].decode(errors="surrogateescape"))


def _refuse_updates(path: Path, task_id: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(
            f"CREATE TRIGGER refuse BEFORE UPDATE ON tasks WHEN new.id = '{task_id}'"
            " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tasks.db"


@pytest.fixture
async def storage(path: Path) -> AsyncIterator[SqliteStorage]:
    async with open_sqlite(path) as storage:
        yield storage
