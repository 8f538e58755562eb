"""A task comes back as it was stored: every state, every field, every microsecond."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import attrs
import pytest

from ...domain.ids import JsonText, LeaseToken, QueueName, TaskType
from ...domain.limits import MAX_ATTEMPTS, MAX_JSON_DEPTH, MAX_PRIORITY
from ...domain.ports import TaskRepository
from ...domain.retry import RetryPolicy
from ...domain.storing import Added, Change, Found, Replaced
from ...domain.task import Cancelled, Dead, Failed, Leased, Settled, Succeeded, Task, Verb
from ..builders import (
    DAY,
    MICROSECOND,
    MINUTE,
    NOON,
    SECOND,
    a_lease,
    a_task,
    an_error,
    leased_until,
)

_UNICODE: Final = "naïve 東京 🦊 e\u0301 \u2028 ' \" \\ % {} $1 -- ;\n\t\x01\x7f\uffff"
_TRACEBACK: Final = 'Traceback (most recent call last):\n  File "a.py", line 1\nValueError: boom\n'

_TEN_ERRORS: Final = tuple(
    an_error(
        f"{_UNICODE} {number}",
        attempt=number,
        worker_id=f"host-{number}:4711.a_b",
        at=NOON + number * MINUTE + number * MICROSECOND,
        type=f"errors.Kind{number}",
        traceback=_TRACEBACK * number,
    )
    for number in range(1, 11)
)
_FIRST_MOMENT: Final = datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=UTC)
_LATE_MOMENT: Final = datetime(2199, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)

STORED_TASKS: Final[dict[str, Task]] = {
    "queued": a_task(),
    "queued for later": a_task(run_after=NOON + 400 * DAY),
    "queued again after failures": a_task(
        attempts=2, releases=3, lease_number=6, version=12, errors=_TEN_ERRORS[:2]
    ),
    "leased": a_task(state=leased_until(NOON + MINUTE)),
    "leased, cancel requested": a_task(
        state=leased_until(NOON + MINUTE, cancel_requested_at=NOON + MICROSECOND)
    ),
    "succeeded without result": a_task(state=Succeeded(at=NOON), attempts=1),
    "succeeded with null": a_task(state=Succeeded(at=NOON, result=JsonText("null"))),
    "succeeded with an object": a_task(
        state=Succeeded(at=NOON, result=JsonText('{"größe": [1, 2.50, "🦊"]}'))
    ),
    "succeeded with a text": a_task(state=Succeeded(at=NOON, result=JsonText('"null"'))),
    "succeeded with an empty text": a_task(state=Succeeded(at=NOON, result=JsonText('""'))),
    "failed": a_task(state=Failed(at=NOON), attempts=1, errors=_TEN_ERRORS[:1]),
    "dead with ten errors": a_task(state=Dead(at=NOON), attempts=10, errors=_TEN_ERRORS),
    "cancelled": a_task(state=Cancelled(at=NOON)),
    **{
        f"settled by {verb}": a_task(settled=Settled(token=LeaseToken("t-1"), verb=verb))
        for verb in Verb
    },
    "an error without words": a_task(errors=[an_error("", type="Error")]),
    "everything small": attrs.evolve(
        a_task(key="k", max_attempts=1, run_after=_FIRST_MOMENT),
        retry=RetryPolicy(base=timedelta(milliseconds=1), cap=timedelta(milliseconds=1)),
        created_at=_FIRST_MOMENT,
        updated_at=_FIRST_MOMENT,
    ),
    "everything large": attrs.evolve(
        a_task(
            queue=QueueName("q" * 100),
            type=TaskType("t" * 100),
            key="🦊" * 63 + "abc",
            priority=MAX_PRIORITY,
            max_attempts=MAX_ATTEMPTS,
            state=Leased(
                lease=a_lease("t" * 100, holder="w" * 100, until=_LATE_MOMENT),
                cancel_requested_at=_LATE_MOMENT,
            ),
            run_after=_LATE_MOMENT,
            attempts=MAX_ATTEMPTS - 1,
            releases=MAX_ATTEMPTS + 10,
            lease_number=2**31 - 1,
            errors=_TEN_ERRORS,
            settled=Settled(token=LeaseToken("s" * 100), verb=Verb.RELEASE),
            version=2**53 + 1,
        ),
        retry=RetryPolicy(base=DAY, cap=30 * DAY),
        created_at=_LATE_MOMENT,
        updated_at=_LATE_MOMENT,
    ),
    "odd microseconds": attrs.evolve(
        a_task(
            run_after=NOON + 123_457 * MICROSECOND,
            state=Dead(at=NOON + 333_333 * MICROSECOND),
        ),
        retry=RetryPolicy(base=1234567 * MICROSECOND, cap=7654321 * MICROSECOND),
        created_at=NOON - 999_999 * MICROSECOND,
        updated_at=NOON - MICROSECOND,
    ),
}

PAYLOADS: Final[dict[str, str]] = {
    "empty": "{}",
    "an integer beyond doubles": '{"i": 9007199254740993}',
    "the least 64-bit integer": '{"i": -9223372036854775808}',
    "an integer of 1000 digits": '{"i": ' + "9" * 1000 + "}",
    "a large double": '{"x": 1e308}',
    "a small double": '{"x": 5e-324}',
    "zeros kept": '{"x": 1.500, "y": 0.0, "z": -0.0}',
    "an integer and a fraction": '{"one": 1, "also": 1.0}',
    "every kind of value": '{"a": [null, true, false, 0, "", {}, []]}',
    "keys out of order": '{"bb": 1, "a": 2, "": 3, "ä": 4}',
    "a key twice": '{"a": 1, "a": 2}',
    "keys alike": '{"\u00e9": 1, "e\u0301": 2, "K": 3, "\u212a": 4}',
    "text of all sorts": r'{"t": "naïve 東京 🦊 \u2028 \" \\ / \n \t \u0001 \u007f \uffff"}',
    "looks like SQL": '{"t": "\'; DROP TABLE tasks; -- $1 %s :name ?"}',
    "nested 64 levels": '{"a": ' * MAX_JSON_DEPTH + "1" + "}" * MAX_JSON_DEPTH,
    "a megabyte": '{"t": "' + "x" * (1024 * 1024 - 9) + '"}',
}


class RoundTripContract:
    """`add`, `replace` and `load` keep every value."""

    @pytest.mark.parametrize("task", STORED_TASKS.values(), ids=STORED_TASKS.keys())
    async def test_an_added_task_comes_back_equal(self, tasks: TaskRepository, task: Task) -> None:
        outcome = await tasks.add([task])

        assert outcome == [Added.STORED]
        assert await tasks.load([task.id], with_payload=True) == Found(tasks=(task,))

    @pytest.mark.parametrize("task", STORED_TASKS.values(), ids=STORED_TASKS.keys())
    async def test_a_replaced_task_comes_back_equal(
        self, tasks: TaskRepository, task: Task
    ) -> None:
        old = attrs.evolve(
            a_task(id=task.id, queue=task.queue, type=task.type),
            max_attempts=task.max_attempts,
            retry=task.retry,
            priority=task.priority,
            idempotency_key=task.idempotency_key,
            created_at=task.created_at,
        )
        await tasks.add([old])

        outcome = await tasks.replace([Change(old=old, new=task)])

        assert outcome == [Replaced.DONE]
        assert await tasks.load([task.id], with_payload=True) == Found(tasks=(task,))

    @pytest.mark.parametrize("task", STORED_TASKS.values(), ids=STORED_TASKS.keys())
    async def test_without_payload_all_else_comes_back_equal(
        self, tasks: TaskRepository, task: Task
    ) -> None:
        await tasks.add([task])

        found = await tasks.load([task.id], with_payload=False)

        assert found == Found(tasks=(without_payload(task),))

    @pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
    async def test_a_payload_comes_back_as_it_is_spelt(
        self, tasks: TaskRepository, payload: str
    ) -> None:
        task = a_task(payload=payload)
        await tasks.add([task])

        [claimed] = (await tasks.load([task.id], with_payload=True)).tasks

        assert claimed.payload == task.payload
        assert claimed.payload_bytes == task.payload_bytes

    @pytest.mark.parametrize("payload", PAYLOADS.values(), ids=PAYLOADS.keys())
    async def test_a_result_comes_back_as_it_is_spelt(
        self, tasks: TaskRepository, payload: str
    ) -> None:
        task = a_task()
        result = a_task(payload=payload).payload
        await tasks.add([task])
        done = attrs.evolve(task, state=Succeeded(at=NOON, result=result), version=2)

        await tasks.replace([Change(old=task, new=done)])

        assert (await tasks.load([task.id], with_payload=True)).tasks == (done,)

    async def test_many_are_loaded_at_once(self, tasks: TaskRepository) -> None:
        stored = list(STORED_TASKS.values())
        await tasks.add(stored)

        found = await tasks.load([task.id for task in stored], with_payload=True)

        assert {task.id: task for task in found.tasks} == {task.id: task for task in stored}
        assert len(found.tasks) == len(stored)

    async def test_an_id_that_nothing_has_is_left_out(self, tasks: TaskRepository) -> None:
        task = a_task()
        await tasks.add([task])

        found = await tasks.load([a_task().id, task.id], with_payload=True)

        assert found == Found(tasks=(task,))

    async def test_an_id_asked_for_twice_is_answered_once(self, tasks: TaskRepository) -> None:
        task = a_task()
        await tasks.add([task])

        found = await tasks.load([task.id, task.id], with_payload=True)

        assert found == Found(tasks=(task,))

    async def test_nothing_is_found_where_nothing_is_asked_for(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task()])

        found = await tasks.load([], with_payload=True)

        assert found == Found()

    async def test_times_come_back_in_utc(self, tasks: TaskRepository) -> None:
        task = a_task(state=leased_until(NOON + SECOND, cancel_requested_at=NOON))
        await tasks.add([task])

        [loaded] = (await tasks.load([task.id], with_payload=True)).tasks

        assert isinstance(loaded.state, Leased)
        assert loaded.run_after.tzinfo is UTC
        assert loaded.state.lease.expires_at.tzinfo is UTC
        assert loaded.state.cancel_requested_at is not None
        assert loaded.state.cancel_requested_at.tzinfo is UTC


def without_payload(task: Task) -> Task:
    """Return `task` as it is read without payload."""
    if isinstance(task.state, Succeeded):
        return attrs.evolve(task, payload=None, state=Succeeded(at=task.state.at))
    return attrs.evolve(task, payload=None)
