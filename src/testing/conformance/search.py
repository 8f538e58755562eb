"""Listing tasks."""

from __future__ import annotations

from itertools import product
from typing import Final

import pytest

from ...domain.ids import IdempotencyKey, JsonText, QueueName, TaskId
from ...domain.ports import TaskRepository
from ...domain.storing import Change, Found, Selection
from ...domain.task import Dead, Queued, State, Status, Succeeded, Task
from ..builders import (
    EMAILS,
    IMAGES,
    NOON,
    RESIZE,
    SEND,
    a_task,
    a_task_id,
    leased_until,
)
from .add import HOLDERS
from .replace import changed
from .round_trip import without_payload

_KEY: Final = IdempotencyKey("k-1")
_STATES: Final[tuple[State, ...]] = (Queued(), leased_until(NOON), Dead(at=NOON))
_MIXED: Final = tuple(
    # In an order that is not that of any column; the key is held once in each queue.
    a_task(
        id=a_task_id(1 + place * 7 % 18),
        queue=queue,
        type=type_,
        state=state,
        key=_KEY if place in {1, 8, 16} else f"other-{place}" if place % 2 else None,
    )
    for place, (queue, type_, state) in enumerate(
        product(
            (EMAILS, IMAGES, QueueName("third")),
            (SEND, RESIZE),
            _STATES,
        )
    )
)
_SELECTIONS: Final = tuple(
    Selection(queue=queue, type=type_, statuses=statuses, idempotency_key=key, before=before)
    for queue, type_, statuses, key, before in product(
        (None, IMAGES),
        (None, RESIZE),
        ((), (Status.LEASED,), (Status.DEAD,), (Status.LEASED, Status.QUEUED)),
        (None, _KEY),
        (None, a_task_id(8)),  # of a task that holds the key
    )
)


class SearchContract:
    """`search` lists tasks, the greatest id first."""

    async def test_the_greatest_id_comes_first(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task(id=a_task_id(number)) for number in (3, 1, 4, 2)])

        found = await tasks.search(Selection(), limit=10, with_payload=False)

        assert [task.id for task in found.tasks] == [a_task_id(number) for number in (4, 3, 2, 1)]

    async def test_nothing_is_found_where_nothing_is_stored(self, tasks: TaskRepository) -> None:
        found = await tasks.search(Selection(), limit=10, with_payload=True)

        assert found == Found()

    async def test_no_more_than_the_limit_are_listed(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task(id=a_task_id(number)) for number in (1, 2, 3)])

        found = await tasks.search(Selection(), limit=2, with_payload=False)

        assert [task.id for task in found.tasks] == [a_task_id(3), a_task_id(2)]

    async def test_payload_and_result_come_only_when_asked_for(self, tasks: TaskRepository) -> None:
        task = a_task(payload='{"n": 1}', state=Succeeded(at=NOON, result=JsonText("[2]")))
        await tasks.add([task])

        with_ = await tasks.search(Selection(), limit=10, with_payload=True)
        without = await tasks.search(Selection(), limit=10, with_payload=False)

        assert with_ == Found(tasks=(task,))
        assert without == Found(tasks=(without_payload(task),))

    async def test_each_part_of_a_selection_narrows(self, tasks: TaskRepository) -> None:
        plain = a_task(id=a_task_id(1))
        image = a_task(id=a_task_id(2), queue=IMAGES)
        resize = a_task(id=a_task_id(3), type=RESIZE)
        dead = a_task(id=a_task_id(4), state=Dead(at=NOON))
        keyed = a_task(id=a_task_id(5), key="k-1")
        keyed_image = a_task(id=a_task_id(6), key="k-1", queue=IMAGES)
        await tasks.add([plain, image, resize, dead, keyed, keyed_image])
        key = IdempotencyKey("k-1")

        async def numbers(selection: Selection) -> list[int]:
            found = await tasks.search(selection, limit=10, with_payload=False)
            return [int(task.id[:8], 16) for task in found.tasks]

        assert await numbers(Selection(queue=IMAGES)) == [6, 2]
        assert await numbers(Selection(type=RESIZE)) == [3]
        assert await numbers(Selection(statuses=(Status.DEAD,))) == [4]
        assert await numbers(Selection(statuses=(Status.DEAD, Status.QUEUED))) == [6, 5, 4, 3, 2, 1]
        assert await numbers(Selection(idempotency_key=key)) == [6, 5]
        assert await numbers(Selection(idempotency_key=key, queue=EMAILS)) == [5]
        assert await numbers(Selection(before=a_task_id(3))) == [2, 1]
        assert await numbers(Selection(before=a_task_id(6), queue=IMAGES)) == [2]
        assert await numbers(Selection(queue=QueueName("Images"))) == []
        assert await numbers(Selection(idempotency_key=IdempotencyKey("K-1"))) == []

    @pytest.mark.parametrize("status", Status)
    async def test_a_status_finds_its_tasks_only(
        self, tasks: TaskRepository, status: Status
    ) -> None:
        each = {task.status: task for task in (a_task(state=state) for state in HOLDERS.values())}
        await tasks.add(list(each.values()))

        found = await tasks.search(Selection(statuses=(status,)), limit=10, with_payload=True)

        assert found == Found(tasks=(each[status],))

    @pytest.mark.parametrize("limit", [1, 2, 100])
    async def test_the_parts_of_a_selection_narrow_together(
        self, tasks: TaskRepository, limit: int
    ) -> None:
        await tasks.add(_MIXED)

        for selection in _SELECTIONS:
            found = await tasks.search(selection, limit=limit, with_payload=False)

            fitting = sorted((t.id for t in _MIXED if _fits(t, selection)), reverse=True)
            assert [task.id for task in found.tasks] == fitting[:limit], selection

    @pytest.mark.parametrize("size", [1, 2, 7, 20])
    async def test_a_walk_visits_each_task_once_while_tasks_change(
        self, tasks: TaskRepository, size: int
    ) -> None:
        stored = [a_task(id=a_task_id(number)) for number in range(100, 120)]
        await tasks.add(stored)
        visited: list[TaskId] = []
        before: TaskId | None = None

        while page := await _page(tasks, before, size):
            visited += [task.id for task in page]
            before = visited[-1]
            # Newer tasks come, visited ones change, end and go: none of it moves the walk.
            await tasks.add([a_task(), a_task(id=a_task_id(1000 + len(visited)))])
            ended = changed(page[0], Dead(at=NOON))
            await tasks.replace([Change(old=page[0], new=ended)])
            await tasks.delete([ended])

        assert visited == [task.id for task in reversed(stored)]


async def _page(tasks: TaskRepository, before: TaskId | None, size: int) -> tuple[Task, ...]:
    found = await tasks.search(
        Selection(queue=EMAILS, before=before), limit=size, with_payload=False
    )
    return found.tasks


def _fits(task: Task, selection: Selection) -> bool:
    return (
        selection.queue in {None, task.queue}
        and selection.type in {None, task.type}
        and (not selection.statuses or task.status in selection.statuses)
        and selection.idempotency_key in {None, task.idempotency_key}
        and (selection.before is None or task.id < selection.before)
    )
