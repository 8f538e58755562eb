"""Comparing and swapping many at once."""

from __future__ import annotations

import asyncio

import attrs

from ...domain.lease import Lease
from ...domain.ports import TaskRepository
from ...domain.storing import Change, Found, Replaced
from ...domain.task import Cancelled, Dead, Queued, Task
from ..builders import (
    HOUR,
    NOON,
    a_demand,
    a_lease,
    a_task,
    a_task_id,
    leased_until,
    some_grants,
)
from .add import HOLDERS
from .replace import changed, stored


class ReplaceBatchContract:
    """`replace` answers each change of a batch by itself, in the caller's order."""

    async def test_no_changes_have_no_outcomes(self, tasks: TaskRepository) -> None:
        outcomes = await tasks.replace([])

        assert outcomes == []

    async def test_a_mixed_batch_of_changes_is_answered_in_its_order(
        self, tasks: TaskRepository
    ) -> None:
        sound = [a_task(id=a_task_id(number)) for number in (5, 1, 3)]
        outdated, unknown = a_task(id=a_task_id(4)), a_task(id=a_task_id(2))
        newer = changed(outdated, leased_until(NOON + HOUR))
        await tasks.add([*sound, newer])
        batch = [sound[0], outdated, sound[1], unknown, sound[2]]

        outcomes = await tasks.replace(
            [Change(old=task, new=changed(task, Dead(at=NOON))) for task in batch]
        )

        assert outcomes == [
            Replaced.DONE,
            Replaced.STALE,
            Replaced.DONE,
            Replaced.STALE,
            Replaced.DONE,
        ]
        assert await stored(tasks, sound) == [changed(task, Dead(at=NOON)) for task in sound]
        assert await stored(tasks, [outdated, unknown]) == [newer]

    async def test_each_task_of_a_batch_gets_its_own_change(self, tasks: TaskRepository) -> None:
        before = [a_task(version=number + 1) for number in range(len(HOLDERS))]
        after = [changed(task, state) for task, state in zip(before, HOLDERS.values(), strict=True)]
        await tasks.add(before)

        outcomes = await tasks.replace(
            [Change(old=old, new=new) for old, new in zip(before, after, strict=True)]
        )

        assert outcomes == [Replaced.DONE] * len(HOLDERS)
        assert await stored(tasks, before) == after

    async def test_a_thousand_are_changed_at_once(self, tasks: TaskRepository) -> None:
        many = [a_task() for _ in range(1000)]
        await tasks.add(many)

        outcomes = await tasks.replace(
            [Change(old=task, new=changed(task, Dead(at=NOON))) for task in many]
        )

        assert outcomes == [Replaced.DONE] * 1000
        assert await tasks.claim(a_demand(), now=NOON) == Found()


class ReplaceRaceContract:
    """Of changes of one version, one is made, and nobody waits for ever."""

    async def test_of_many_changes_of_one_version_one_is_made(self, tasks: TaskRepository) -> None:
        task = a_task()
        rivals = [
            attrs.evolve(changed(task, leased_until(NOON)), releases=number) for number in range(20)
        ]
        await tasks.add([task])

        answers = await asyncio.gather(
            *(tasks.replace([Change(old=task, new=rival)]) for rival in rivals)
        )

        winners = [
            rival
            for rival, answer in zip(rivals, answers, strict=True)
            if answer == [Replaced.DONE]
        ]
        assert await stored(tasks, [task]) == winners

    async def test_batches_in_opposite_orders_change_each_task_once(
        self, tasks: TaskRepository
    ) -> None:
        many = [a_task() for _ in range(100)]
        await tasks.add(many)
        batches = [
            [
                Change(old=task, new=attrs.evolve(changed(task, Queued()), releases=turn))
                for task in (many if turn % 2 else reversed(many))
            ]
            for turn in range(6)
        ]

        async with asyncio.timeout(30):
            answers = await asyncio.gather(*(tasks.replace(batch) for batch in batches))

        made = [
            change.new
            for batch, answer in zip(batches, answers, strict=True)
            for change, outcome in zip(batch, answer, strict=True)
            if outcome is Replaced.DONE
        ]
        assert sorted(made, key=_by_id) == await stored(tasks, many)

    async def test_a_claim_and_a_change_of_one_task_do_not_both_win(
        self, tasks: TaskRepository
    ) -> None:
        many = [a_task() for _ in range(20)]
        await tasks.add(many)

        claimed, *answers = await asyncio.gather(
            tasks.claim(a_demand(grants=some_grants(20)), now=NOON),
            *(
                tasks.replace([Change(old=task, new=changed(task, Cancelled(at=NOON)))])
                for task in many
            ),
        )

        assert isinstance(claimed, Found)
        cancelled = {
            task.id for task, answer in zip(many, answers, strict=True) if answer == [Replaced.DONE]
        }
        leased = {task.id for task in claimed.tasks}
        assert not cancelled & leased
        left = await tasks.claim(a_demand(grants=_more_grants(20)), now=NOON)
        assert len(cancelled) + len(leased) + len(left.tasks) == 20


def _by_id(task: Task) -> str:
    return task.id


def _more_grants(number: int) -> list[Lease]:
    return [a_lease(f"later-{index}") for index in range(number)]
