"""Comparing and swapping: a change is made to the version it was decided on, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import pytest

from ...domain.ids import JsonText
from ...domain.ports import TaskRepository
from ...domain.storing import Change, Found, Replaced
from ...domain.task import Cancelled, Dead, Leased, Queued, State, Task
from ..builders import (
    HOUR,
    MINUTE,
    NOON,
    SECOND,
    a_demand,
    a_task,
    an_error,
    leased_until,
    some_grants,
)
from .add import HOLDERS


class ReplaceContract:
    """`replace` stores a change if nobody was faster."""

    async def test_a_change_is_stored(self, tasks: TaskRepository) -> None:
        old = a_task()
        new = changed(old, Cancelled(at=NOON))
        await tasks.add([old])

        outcome = await tasks.replace([Change(old=old, new=new)])

        assert outcome == [Replaced.DONE]
        assert await stored(tasks, [old]) == [new]

    async def test_a_change_of_an_older_version_is_stale_and_changes_nothing(
        self, tasks: TaskRepository
    ) -> None:
        first = a_task()
        second = changed(first, leased_until(NOON + HOUR))
        late = changed(first, Cancelled(at=NOON))
        await tasks.add([first])
        await tasks.replace([Change(old=first, new=second)])

        outcome = await tasks.replace([Change(old=first, new=late)])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [first]) == [second]

    async def test_a_lease_renewed_meanwhile_is_not_renewed_again_and_no_other_is(
        self, tasks: TaskRepository
    ) -> None:
        first, other = (a_task(state=leased_until(NOON + MINUTE)) for _ in range(2))
        renewed = changed(first, leased_until(NOON + HOUR))
        late = changed(first, leased_until(NOON + 2 * HOUR))
        await tasks.add([first, other])
        done = await tasks.replace([Change(old=first, new=renewed)])

        outcome = await tasks.replace([Change(old=first, new=late)])

        assert (done, outcome) == ([Replaced.DONE], [Replaced.STALE])
        assert await stored(tasks, [first, other]) == [renewed, other]

    async def test_a_change_of_a_version_yet_to_come_is_stale(self, tasks: TaskRepository) -> None:
        task = a_task(version=4)
        ahead = attrs.evolve(task, version=5)
        await tasks.add([task])

        outcome = await tasks.replace([Change(old=ahead, new=changed(ahead, Dead(at=NOON)))])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [task]) == [task]

    async def test_a_change_of_a_task_claimed_meanwhile_is_stale(
        self, tasks: TaskRepository
    ) -> None:
        seen = a_task()
        await tasks.add([seen])
        [claimed] = (await tasks.claim(a_demand(), now=NOON)).tasks

        outcome = await tasks.replace([Change(old=seen, new=changed(seen, Cancelled(at=NOON)))])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [seen]) == [claimed]

    async def test_a_change_of_a_task_that_was_never_stored_is_stale(
        self, tasks: TaskRepository
    ) -> None:
        task = a_task()

        outcome = await tasks.replace([Change(old=task, new=changed(task, Dead(at=NOON)))])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [task]) == []

    async def test_a_change_of_a_deleted_task_is_stale_and_does_not_bring_it_back(
        self, tasks: TaskRepository
    ) -> None:
        task = a_task(state=Dead(at=NOON))
        await tasks.add([task])
        await tasks.delete([task])

        outcome = await tasks.replace([Change(old=task, new=changed(task, Queued()))])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [task]) == []

    @pytest.mark.parametrize("payload", [None, JsonText('{"other": 1}')], ids=["none", "other"])
    async def test_the_payload_is_not_written(
        self, tasks: TaskRepository, payload: JsonText | None
    ) -> None:
        task = a_task(payload='{"n": 1}')
        new = changed(task, leased_until(NOON + HOUR))
        await tasks.add([task])

        await tasks.replace([Change(old=task, new=attrs.evolve(new, payload=payload))])

        assert await stored(tasks, [task]) == [new]

    async def test_only_the_version_of_the_old_task_matters(self, tasks: TaskRepository) -> None:
        task = a_task(payload='{"n": 1}', errors=[an_error()])
        seen = attrs.evolve(task, payload=None, errors=())
        new = changed(task, leased_until(NOON + HOUR))
        await tasks.add([task])

        outcome = await tasks.replace([Change(old=seen, new=new)])

        assert outcome == [Replaced.DONE]
        assert await stored(tasks, [task]) == [new]

    @pytest.mark.parametrize("before", HOLDERS.values(), ids=HOLDERS.keys())
    async def test_any_state_may_become_any_other(
        self, tasks: TaskRepository, before: State
    ) -> None:
        task = a_task(state=before, lease_number=1)
        await tasks.add([task])

        for after in HOLDERS.values():
            old, task = task, changed(task, after)
            assert await tasks.replace([Change(old=old, new=task)]) == [Replaced.DONE]
            assert await stored(tasks, [task]) == [task]

    async def test_a_task_made_queued_again_is_leased_in_its_new_place(
        self, tasks: TaskRepository
    ) -> None:
        back, other = a_task(state=leased_until(NOON)), a_task(run_after=NOON - MINUTE)
        queued = attrs.evolve(changed(back, Queued()), run_after=NOON - 2 * MINUTE)
        await tasks.add([other, back])
        await tasks.replace([Change(old=back, new=queued)])

        found = await tasks.claim(a_demand(grants=some_grants(2)), now=NOON)

        assert [task.id for task in found.tasks] == [back.id, other.id]

    async def test_a_task_put_off_is_leased_when_it_is_due(self, tasks: TaskRepository) -> None:
        task = a_task(state=leased_until(NOON))
        queued = attrs.evolve(changed(task, Queued()), run_after=NOON + SECOND)
        await tasks.add([task])
        await tasks.replace([Change(old=task, new=queued)])

        early = await tasks.claim(a_demand(), now=NOON)
        on_time = await tasks.claim(a_demand(), now=NOON + SECOND)

        assert early == Found()
        assert [task.id for task in on_time.tasks] == [task.id]


def changed(task: Task, state: State) -> Task:
    """Return the next version of `task`, in `state`."""
    # No leased task lacks a lease number, and storages may insist on it.
    lease_number = max(task.lease_number, 1) if isinstance(state, Leased) else task.lease_number
    return attrs.evolve(
        task, state=state, lease_number=lease_number, version=task.version + 1, updated_at=NOON
    )


async def stored(tasks: TaskRepository, wanted: Sequence[Task]) -> list[Task]:
    """Return what is kept of `wanted`, in that order; what is gone is left out."""
    found = await tasks.load([task.id for task in wanted], with_payload=True)
    by_id = {task.id: task for task in found.tasks}
    return [by_id[task.id] for task in wanted if task.id in by_id]
