"""Removing tasks, and setting unreadable ones aside."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest

from ...domain.ids import JsonText
from ...domain.ports import TaskRepository
from ...domain.storing import Change, Replaced
from ...domain.task import Cancelled, Dead, Failed, Queued, State, Succeeded
from ..builders import (
    HOUR,
    NOON,
    a_demand,
    a_task,
    a_task_id,
    an_error,
    leased_until,
    some_grants,
)
from .replace import changed, stored


class DeleteContract:
    """`delete` removes a task that still has its version."""

    async def test_a_deleted_task_is_gone(self, tasks: TaskRepository) -> None:
        task, other = a_task(state=Dead(at=NOON)), a_task(state=Dead(at=NOON))
        await tasks.add([task, other])

        outcome = await tasks.delete([task])

        assert outcome == [Replaced.DONE]
        assert await stored(tasks, [task, other]) == [other]

    async def test_a_task_changed_meanwhile_stays(self, tasks: TaskRepository) -> None:
        seen = a_task(state=Dead(at=NOON))
        requeued = changed(seen, Queued())
        await tasks.add([seen])
        await tasks.replace([Change(old=seen, new=requeued)])

        outcome = await tasks.delete([seen])

        assert outcome == [Replaced.STALE]
        assert await stored(tasks, [seen]) == [requeued]

    async def test_a_mixed_batch_of_deletions_is_answered_in_its_order(
        self, tasks: TaskRepository
    ) -> None:
        ended = Succeeded(at=NOON, result=JsonText("1"))
        two, one = (a_task(id=a_task_id(number), state=ended) for number in (2, 1))
        outdated, unknown = a_task(state=ended, version=7), a_task(state=ended)
        await tasks.add([two, one, outdated])
        asked = [two, attrs.evolve(outdated, version=6), unknown, attrs.evolve(one, payload=None)]

        outcomes = await tasks.delete(asked)

        assert outcomes == [Replaced.DONE, Replaced.STALE, Replaced.STALE, Replaced.DONE]
        assert await stored(tasks, [two, one, outdated, unknown]) == [outdated]
        assert await tasks.delete([]) == []

    async def test_a_deleted_task_may_be_added_anew(self, tasks: TaskRepository) -> None:
        task = a_task(key="k-1", state=Dead(at=NOON))
        await tasks.add([task])
        await tasks.delete([task])
        anew = attrs.evolve(task, state=Queued(), version=1)

        await tasks.add([anew])

        assert await stored(tasks, [task]) == [anew]
        assert len((await tasks.claim(a_demand(), now=NOON)).tasks) == 1


class QuarantineContract:
    """`quarantine` makes tasks dead without looking at them."""

    async def test_a_quarantined_task_is_dead_with_the_error(self, tasks: TaskRepository) -> None:
        task = a_task(
            state=leased_until(NOON + HOUR, cancel_requested_at=NOON), key="k-1", version=3
        )
        error = an_error("cannot be read", worker_id="leaseq.reaper")
        await tasks.add([task])

        await tasks.quarantine([task.id], error, now=NOON)

        [dead] = await stored(tasks, [task])
        assert dead.state == Dead(at=NOON)
        assert dead.errors == (error,)
        assert dead.version > task.version
        assert dead.updated_at == NOON
        assert dead.idempotency_key == "k-1"
        assert dead.lease_number == task.lease_number

    @pytest.mark.parametrize("end", [Succeeded, Failed, Dead, Cancelled])
    async def test_a_task_that_has_ended_meanwhile_stays_as_it_ended(
        self, tasks: TaskRepository, end: Callable[..., State]
    ) -> None:
        ended = a_task(state=end(at=NOON))
        await tasks.add([ended])

        await tasks.quarantine([ended.id], an_error(), now=NOON + HOUR)

        assert await stored(tasks, [ended]) == [ended]

    async def test_others_and_unknown_ids_are_left_alone(self, tasks: TaskRepository) -> None:
        task, other = a_task(), a_task()
        await tasks.add([task, other])

        await tasks.quarantine([a_task().id, task.id], an_error(), now=NOON)

        assert await stored(tasks, [other]) == [other]
        assert (await tasks.claim(a_demand(grants=some_grants(2)), now=NOON)).tasks != ()

    async def test_a_change_decided_before_is_stale(self, tasks: TaskRepository) -> None:
        task = a_task(state=leased_until(NOON + HOUR))
        await tasks.add([task])
        await tasks.quarantine([task.id], an_error(), now=NOON)

        outcome = await tasks.replace([Change(old=task, new=changed(task, Succeeded(at=NOON)))])

        assert outcome == [Replaced.STALE]
