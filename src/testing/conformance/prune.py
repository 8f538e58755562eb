"""Pruning: what ended long enough ago, and nothing else."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import attrs
import pytest

from ...domain.ids import JsonText, QueueName
from ...domain.ports import TaskRepository
from ...domain.storing import Change, PruneRule
from ...domain.task import Cancelled, Dead, Failed, Queued, State, Status, Succeeded, Task
from ..builders import DAY, EMAILS, HOUR, IMAGES, MICROSECOND, NOON, a_task, leased_until
from .replace import changed, stored

ALL_RULES: Final = tuple(
    PruneRule(status=status, finished_before=NOON)
    for status in (Status.SUCCEEDED, Status.FAILED, Status.DEAD, Status.CANCELLED)
)

PRUNED_AT_NOON: Final[dict[str, tuple[State, bool]]] = {
    "succeeded before": (Succeeded(at=NOON - MICROSECOND, result=JsonText("1")), True),
    "succeeded at the moment": (Succeeded(at=NOON), False),
    "succeeded after": (Succeeded(at=NOON + MICROSECOND), False),
    "failed before": (Failed(at=NOON - MICROSECOND), True),
    "failed at the moment": (Failed(at=NOON), False),
    "dead before": (Dead(at=NOON - MICROSECOND), True),
    "dead at the moment": (Dead(at=NOON), False),
    "cancelled before": (Cancelled(at=NOON - MICROSECOND), True),
    "cancelled at the moment": (Cancelled(at=NOON), False),
    "leased since long ago": (leased_until(NOON - 30 * DAY), False),
    "leased": (leased_until(NOON + DAY), False),
    "queued": (Queued(), False),
}
_LONG_AGO: Final = NOON - 365 * DAY
_UNFINISHED: Final = (Queued(), leased_until(_LONG_AGO))


class PruneContract:
    """`prune` deletes terminal tasks that a rule covers."""

    @pytest.mark.parametrize(
        ("state", "pruned"), PRUNED_AT_NOON.values(), ids=PRUNED_AT_NOON.keys()
    )
    async def test_a_task_goes_that_finished_before_the_moment(
        self, tasks: TaskRepository, state: State, *, pruned: bool
    ) -> None:
        task = _untouched_for_a_year(a_task(state=state))
        await tasks.add([task])

        number = await tasks.prune(ALL_RULES, limit=10)

        assert number == (1 if pruned else 0)
        assert await stored(tasks, [task]) == ([] if pruned else [task])

    async def test_unfinished_tasks_stay_whatever_the_rules_say(
        self, tasks: TaskRepository
    ) -> None:
        unfinished = [_untouched_for_a_year(a_task(state=state)) for state in _UNFINISHED]
        rules = [
            PruneRule(status=status, finished_before=NOON + 365 * DAY)
            for status in (Status.QUEUED, Status.LEASED)
        ]
        await tasks.add(unfinished)

        number = await tasks.prune(rules, limit=10)

        assert number == 0
        assert await stored(tasks, unfinished) == unfinished

    async def test_each_status_has_its_own_moment(self, tasks: TaskRepository) -> None:
        old_success, new_success = (a_task(state=Succeeded(at=at)) for at in _around(NOON - HOUR))
        old_dead, new_dead = (a_task(state=Dead(at=at)) for at in _around(NOON - DAY))
        failed = a_task(state=Failed(at=_LONG_AGO))
        await tasks.add([old_success, new_success, old_dead, new_dead, failed])

        number = await tasks.prune(
            [
                PruneRule(status=Status.SUCCEEDED, finished_before=NOON - HOUR),
                PruneRule(status=Status.DEAD, finished_before=NOON - DAY),
            ],
            limit=10,
        )

        assert number == 2
        assert await stored(tasks, [old_success, new_success, old_dead, new_dead, failed]) == [
            new_success,
            new_dead,
            failed,
        ]

    async def test_tasks_of_all_queues_go(self, tasks: TaskRepository) -> None:
        names = (EMAILS, IMAGES, QueueName("third"))
        await tasks.add([a_task(state=Dead(at=_LONG_AGO), queue=name) for name in names])

        number = await tasks.prune(ALL_RULES, limit=10)

        assert number == 3

    async def test_no_more_than_the_limit_go_at_once(self, tasks: TaskRepository) -> None:
        ended: list[State] = [Succeeded(at=_LONG_AGO), Dead(at=_LONG_AGO), Failed(at=_LONG_AGO)]
        await tasks.add([a_task(state=state) for state in ended for _ in range(3)])

        numbers = [await tasks.prune(ALL_RULES, limit=4) for _ in range(4)]

        assert numbers == [4, 4, 1, 0]

    async def test_without_rules_nothing_goes(self, tasks: TaskRepository) -> None:
        task = a_task(state=Succeeded(at=_LONG_AGO))
        await tasks.add([task])

        number = await tasks.prune([], limit=10)

        assert number == 0
        assert await stored(tasks, [task]) == [task]

    async def test_a_requeued_task_stays(self, tasks: TaskRepository) -> None:
        dead = a_task(state=Dead(at=_LONG_AGO))
        requeued = changed(dead, Queued())
        await tasks.add([dead])
        await tasks.replace([Change(old=dead, new=requeued)])

        number = await tasks.prune(ALL_RULES, limit=10)

        assert number == 0
        assert await stored(tasks, [dead]) == [requeued]


def _around(moment: datetime) -> tuple[datetime, datetime]:
    return moment - MICROSECOND, moment


def _untouched_for_a_year(task: Task) -> Task:
    return attrs.evolve(task, run_after=_LONG_AGO, created_at=_LONG_AGO, updated_at=_LONG_AGO)
