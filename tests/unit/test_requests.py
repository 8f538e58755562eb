from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from leaseq.domain import validation
from leaseq.domain.errors import InvalidArgumentError
from leaseq.domain.requests import LeaseRef, LeaseRequest, NewTask, PageRequest, TaskFilter

# What is of another type is refused as the value is made, before it can reach a batch of others.
WRONG: dict[str, tuple[Callable[[Any], object], Any, str]] = {
    "no type": (lambda value: NewTask(type=value), None, "type"),
    "bytes for a payload": (lambda value: NewTask(type="t", payload=value), b"{}", "payload"),
    "no queue": (lambda value: NewTask(type="t", queue=value), None, "queue"),
    "number for a key": (
        lambda value: NewTask(type="t", idempotency_key=value),
        7,
        "idempotency_key",
    ),
    "fraction for a priority": (lambda value: NewTask(type="t", priority=value), 1.5, "priority"),
    "truth for a priority": (lambda value: NewTask(type="t", priority=value), True, "priority"),
    "text for attempts": (lambda value: NewTask(type="t", max_attempts=value), "3", "max_attempts"),
    "number for a delay": (lambda value: NewTask(type="t", delay=value), 5, "delay"),
    "text for a moment": (lambda value: NewTask(type="t", run_after=value), "now", "run_after"),
    "text for a switch": (
        lambda value: NewTask(type="t", allow_different_payload=value),
        "yes",
        "allow_different_payload",
    ),
    "one text for queues": (
        lambda value: LeaseRequest(worker_id="w", queues=value),
        "emails",
        "queues",
    ),
    "numbers for types": (lambda value: LeaseRequest(worker_id="w", types=value), (1,), "types"),
    "number for a wait": (lambda value: LeaseRequest(worker_id="w", wait=value), 5, "wait"),
    "number for a task": (lambda value: LeaseRef(task_id=value, lease_token="t"), 5, "task_id"),
    "text for statuses": (lambda value: TaskFilter(statuses=value), ("dead",), "statuses"),
    "text for a size": (lambda value: PageRequest(size=value), "9", "size"),
    "number for an id": (validation.task_id, 5, "task_id"),
    "nothing for a queue": (validation.queue_name, None, "queue"),
}


@pytest.mark.parametrize(("make", "value", "field"), WRONG.values(), ids=WRONG)
def test_a_value_of_another_type_is_refused_by_its_name(
    make: Callable[[Any], object], value: object, field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        make(value)

    assert [violation.field for violation in refused.value.violations] == [field]


def test_who_says_nothing_asks_for_one_task_now_and_for_a_page_of_a_hundred() -> None:
    lease, page, task = LeaseRequest(worker_id="w"), PageRequest(), NewTask(type="t")

    assert (lease.max_tasks, lease.wait) == (1, timedelta(0))
    assert page.size == 100
    assert (task.priority, task.max_attempts, task.delay) == (0, None, None)


def test_what_may_be_left_out_is_taken_where_it_is_said() -> None:
    task = NewTask(type="t", max_attempts=3, delay=timedelta(seconds=5))

    assert (task.max_attempts, task.delay) == (3, timedelta(seconds=5))
