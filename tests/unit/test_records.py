from __future__ import annotations

import json
from typing import Any

import pytest

from leaseq.storage import Queue, Task, queue_of, queue_record, task_of, task_record
from leaseq.testing import EMAILS, NOON, a_task, an_error, leased_until
from leaseq.testing.conformance.round_trip import STORED_TASKS

LEASED = a_task(state=leased_until(NOON), errors=[an_error()], payload='{"secret": 1}')

NO_TASKS: dict[str, Any] = {
    "nothing": None,
    "a text": "task",
    "a list": [],
    "an empty mapping": {},
    "an unknown field": {**task_record(LEASED), "colour": "red"},
    "a number as text": {**task_record(LEASED), "priority": "3"},
    "a fraction": {**task_record(LEASED), "attempts": 1.0},
    "a truth for a number": {**task_record(LEASED), "version": True},
    "a number as name": {**task_record(LEASED), "queue": 7},
    "an unknown status": {**task_record(LEASED), "state": {"status": "lost"}},
    "a state without its fields": {**task_record(LEASED), "state": {"status": "leased"}},
    "a state of the wrong kind": {**task_record(LEASED), "state": []},
    "a time without zone": {**task_record(LEASED), "run_after": "2026-03-14T12:00:00"},
    "a time elsewhere": {**task_record(LEASED), "run_after": "2026-03-14T12:00:00+01:00"},
    "a word for a time": {**task_record(LEASED), "created_at": "noon"},
    "a span beyond all": {**task_record(LEASED), "retry": {"base": 10**30, "cap": 10**30}},
    "a retry of the wrong kind": {**task_record(LEASED), "retry": []},
    "an error that is none": {**task_record(LEASED), "errors": [{}]},
}


@pytest.mark.parametrize("task", STORED_TASKS.values(), ids=STORED_TASKS.keys())
def test_a_task_comes_back_from_json_equal(task: Task) -> None:
    text = json.dumps(task_record(task))

    assert task_of(json.loads(text)) == task


def test_a_task_read_without_payload_comes_back_without() -> None:
    assert task_of({**task_record(LEASED), "payload": None}).payload is None


@pytest.mark.parametrize("record", NO_TASKS.values(), ids=NO_TASKS.keys())
def test_what_is_damaged_is_refused_without_a_word_of_what_it_holds(record: object) -> None:
    with pytest.raises(ValueError, match=r"^this is no record of a Task$") as refusal:
        task_of(record)

    assert refusal.value.__cause__ is None
    assert refusal.value.__suppress_context__


def test_a_queue_comes_back_equal() -> None:
    queue = Queue(name=EMAILS, paused=True, version=3)

    assert queue_of(json.loads(json.dumps(queue_record(queue)))) == queue


def test_a_damaged_queue_is_refused() -> None:
    with pytest.raises(ValueError, match="no record of a Queue"):
        queue_of({"name": "emails", "paused": "no"})
