"""What the memory storage does not use of the functions that all storages share."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest

from leaseq.storage import Task, due_in_order, is_due, lease_first, next_due
from leaseq.testing import (
    EMAILS,
    HOUR,
    IMAGES,
    MICROSECOND,
    NOON,
    RESIZE,
    SECOND,
    SEND,
    a_demand,
    a_task,
    leased_until,
    some_grants,
)
from leaseq.testing.conformance.claim import DUE_AT_NOON, IN_ORDER
from leaseq.testing.conformance.next_due import NEXT_DUE_AFTER_NOON


@pytest.mark.parametrize(("task", "due"), DUE_AT_NOON.values(), ids=DUE_AT_NOON.keys())
def test_tasks_are_chosen_exactly_when_they_are_due(task: Task, *, due: bool) -> None:
    chosen = due_in_order([task], a_demand(), now=NOON)

    assert chosen == ([task] if due else [])
    assert is_due(task, NOON) is due


def test_tasks_are_chosen_in_the_order_of_leasing() -> None:
    assert due_in_order(sorted(IN_ORDER, key=id), a_demand(), now=NOON) == list(IN_ORDER)


def test_only_tasks_of_the_queue_and_the_types_are_chosen() -> None:
    wanted, of_type, of_queue = a_task(), a_task(type=RESIZE), a_task(queue=IMAGES)

    chosen = due_in_order([of_queue, of_type, wanted], a_demand(types=[SEND]), now=NOON)

    assert chosen == [wanted]


def test_no_task_is_read_for_which_there_is_no_grant() -> None:
    read: list[Task] = []

    def line() -> Iterator[Task]:
        for task in (a_task(), a_task(), a_task()):
            read.append(task)
            yield task

    leased = lease_first(line(), a_demand(grants=some_grants(2)), now=NOON)

    assert [task.id for task in leased] == [task.id for task in read]
    assert len(leased) == 2


@pytest.mark.parametrize(
    ("moments", "expected"), NEXT_DUE_AFTER_NOON.values(), ids=NEXT_DUE_AFTER_NOON.keys()
)
def test_the_next_moment_is_later_than_now(
    moments: list[datetime], expected: datetime | None
) -> None:
    tasks = [a_task(run_after=moment) for moment in moments]

    assert next_due(tasks, [EMAILS], [], now=NOON) == expected


def test_the_next_moment_is_of_queued_tasks_of_these_queues_and_types() -> None:
    tasks = [
        a_task(run_after=NOON + MICROSECOND, queue=IMAGES),
        a_task(run_after=NOON + MICROSECOND, type=RESIZE),
        a_task(run_after=NOON + MICROSECOND, state=leased_until(NOON + HOUR)),
        a_task(run_after=NOON + SECOND),
    ]

    assert next_due(tasks, [EMAILS], [SEND], now=NOON) == NOON + SECOND
