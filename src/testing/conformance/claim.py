"""Claiming: what is due, to the microsecond, in order, each task to one caller."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs
import pytest

from ...domain.ids import LeaseToken
from ...domain.ports import TaskRepository
from ...domain.storing import Found
from ...domain.task import Cancelled, Dead, Failed, Leased, Settled, Succeeded, Task, Verb
from ..builders import (
    HOUR,
    MICROSECOND,
    MINUTE,
    NOON,
    RESIZE,
    SECOND,
    a_demand,
    a_lease,
    a_task,
    a_task_id,
    an_error,
    leased_until,
    some_grants,
)

# A literal table rather than the domain's own `is_due`, which must not be its own oracle.
DUE_AT_NOON: Final[dict[str, tuple[Task, bool]]] = {
    "due since a microsecond": (a_task(run_after=NOON - MICROSECOND), True),
    "due from now on": (a_task(run_after=NOON), True),
    "due in a microsecond": (a_task(run_after=NOON + MICROSECOND), False),
    "due since long ago": (a_task(run_after=datetime.fromisoformat("1970-01-01T00:00Z")), True),
    "queued again after a failure": (a_task(attempts=9, errors=[an_error()]), True),
    "lease ended a microsecond ago": (a_task(state=leased_until(NOON - MICROSECOND)), False),
    "lease ends now": (a_task(state=leased_until(NOON)), False),
    "lease ends in a microsecond": (a_task(state=leased_until(NOON + MICROSECOND)), False),
    "succeeded": (a_task(state=Succeeded(at=NOON - HOUR)), False),
    "failed": (a_task(state=Failed(at=NOON - HOUR)), False),
    "dead": (a_task(state=Dead(at=NOON - HOUR)), False),
    "cancelled": (a_task(state=Cancelled(at=NOON - HOUR)), False),
}

# Leased in this order, though stored in another.
IN_ORDER: Final = (
    a_task(id=a_task_id(70), priority=255),
    a_task(id=a_task_id(60), priority=2, run_after=NOON - MICROSECOND),
    a_task(id=a_task_id(20), priority=2),
    a_task(id=a_task_id(50), priority=1, run_after=NOON - HOUR, type=RESIZE),
    a_task(id=a_task_id(30), run_after=NOON - 2 * MICROSECOND),
    a_task(id=a_task_id(40), run_after=NOON - MICROSECOND, type=RESIZE),
    a_task(id=a_task_id(10)),
    a_task(id=a_task_id(80)),
)


class ClaimContract:
    """`claim` leases what is due."""

    @pytest.mark.parametrize(("task", "due"), DUE_AT_NOON.values(), ids=DUE_AT_NOON.keys())
    async def test_a_task_is_leased_exactly_when_it_is_due(
        self, tasks: TaskRepository, task: Task, *, due: bool
    ) -> None:
        await tasks.add([task])

        found = await tasks.claim(a_demand(), now=NOON)

        assert [claimed.id for claimed in found.tasks] == ([task.id] if due else [])

    async def test_a_claimed_task_is_leased_and_otherwise_as_it_was(
        self, tasks: TaskRepository
    ) -> None:
        task = a_task(
            payload='{"to": "ada"}',
            key="k-1",
            priority=7,
            attempts=2,
            releases=1,
            lease_number=5,
            version=41,
            errors=[an_error(attempt=1), an_error(attempt=2)],
            settled=Settled(token=LeaseToken("older"), verb=Verb.FAIL),
            run_after=NOON - MINUTE,
        )
        grant = a_lease("fresh", holder="worker-9", until=NOON + 17 * SECOND + MICROSECOND)
        await tasks.add([task])

        found = await tasks.claim(a_demand(grants=[grant]), now=NOON)

        leased = attrs.evolve(
            task, state=Leased(lease=grant), lease_number=6, version=42, updated_at=NOON
        )
        assert found == Found(tasks=(leased,))
        assert await tasks.load([task.id], with_payload=True) == found

    async def test_a_claim_that_finds_nothing_changes_nothing(self, tasks: TaskRepository) -> None:
        later = a_task(run_after=NOON + MICROSECOND)
        await tasks.add([later])

        found = await tasks.claim(a_demand(), now=NOON)

        assert found == Found()
        assert (await tasks.load([later.id], with_payload=True)).tasks == (later,)

    async def test_a_leased_task_is_not_leased_again(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task()])
        await tasks.claim(a_demand(), now=NOON)

        again = await tasks.claim(a_demand(grants=[a_lease("other")]), now=NOON + HOUR)

        assert again == Found()

    async def test_tasks_are_leased_by_priority_then_due_time_then_id(
        self, tasks: TaskRepository
    ) -> None:
        await tasks.add(sorted(IN_ORDER, key=lambda task: task.id))

        found = await tasks.claim(a_demand(grants=some_grants(10)), now=NOON)

        assert [task.id for task in found.tasks] == [task.id for task in IN_ORDER]

    async def test_the_first_in_order_are_leased_where_grants_are_few(
        self, tasks: TaskRepository
    ) -> None:
        await tasks.add(list(reversed(IN_ORDER)))

        found = await tasks.claim(a_demand(grants=some_grants(3)), now=NOON)

        assert [task.id for task in found.tasks] == [task.id for task in IN_ORDER[:3]]

    async def test_one_by_one_they_are_leased_in_the_same_order(
        self, tasks: TaskRepository
    ) -> None:
        await tasks.add(sorted(IN_ORDER, key=lambda task: task.id))

        one_by_one = [
            task.id
            for grant in some_grants(len(IN_ORDER))
            for task in (await tasks.claim(a_demand(grants=[grant]), now=NOON)).tasks
        ]

        assert one_by_one == [task.id for task in IN_ORDER]

    async def test_an_urgent_task_for_later_does_not_hide_one_that_is_due(
        self, tasks: TaskRepository
    ) -> None:
        later = [a_task(priority=255, run_after=NOON + HOUR) for _ in range(20)]
        due = a_task(priority=0)
        await tasks.add([*later, due])

        found = await tasks.claim(a_demand(), now=NOON)

        assert [task.id for task in found.tasks] == [due.id]

    async def test_each_task_gets_the_grant_of_its_place(self, tasks: TaskRepository) -> None:
        grants = (
            a_lease("c", holder="carol", until=NOON + 3 * SECOND),
            a_lease("a", holder="alice", until=NOON + 1 * SECOND),
            a_lease("b", holder="bob", until=NOON + 2 * SECOND),
        )
        await tasks.add([a_task(id=a_task_id(number)) for number in (3, 1, 2)])

        found = await tasks.claim(a_demand(grants=grants), now=NOON)

        assert [(task.id, _lease_of(task)) for task in found.tasks] == [
            (a_task_id(1), grants[0]),
            (a_task_id(2), grants[1]),
            (a_task_id(3), grants[2]),
        ]

    async def test_a_thousand_are_leased_in_one_claim(self, tasks: TaskRepository) -> None:
        stored = [a_task() for _ in range(1001)]
        await tasks.add(stored)
        grants = some_grants(1000)

        found = await tasks.claim(a_demand(grants=grants), now=NOON)

        assert [task.id for task in found.tasks] == [task.id for task in stored[:1000]]
        assert [_lease_of(task) for task in found.tasks] == list(grants)


def _lease_of(task: Task) -> object:
    return task.state.lease if isinstance(task.state, Leased) else None
