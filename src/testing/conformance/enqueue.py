"""Enqueueing: what a producer says is what is kept."""

from __future__ import annotations

import asyncio
from datetime import timedelta, timezone

import attrs
import pytest

from ...domain.errors import IdempotencyKeyReusedError, InvalidArgumentError, TaskNotFoundError
from ...domain.ids import JsonText, QueueName, TaskType
from ...domain.ports import TaskAdmin, TaskQueue
from ...domain.requests import Complete, NewTask
from ...domain.task import Status
from ...domain.views import Enqueued, TaskView
from ..builders import DAY, HOUR, MICROSECOND, MINUTE
from ..fakes import Time
from .queue_fixtures import (
    QUICK,
    QueueFixtures,
    enqueue,
    enqueue_one,
    faults,
    lease,
    lease_one,
    ref,
    settle,
)

_SOUND = NewTask(type="send")


class EnqueueContract(QueueFixtures):
    """`enqueue` stores tasks and `get` shows them."""

    async def test_a_new_task_is_queued_with_the_defaults(
        self, queue: TaskQueue, time: Time
    ) -> None:
        before = time.now()

        [answer] = await queue.enqueue([NewTask(type="send")])

        assert isinstance(answer, Enqueued)
        assert answer.created is True
        created_at = answer.task.created_at
        assert before <= created_at <= time.now()
        assert answer.task == TaskView(
            id=answer.task.id,
            queue=QueueName("default"),
            type=TaskType("send"),
            payload=JsonText("{}"),
            status=Status.QUEUED,
            priority=0,
            attempts=0,
            max_attempts=10,
            run_after=created_at,
            created_at=created_at,
            updated_at=created_at,
            finished_at=None,
            lease_owner=None,
            lease_expires_at=None,
            idempotency_key=None,
            last_error=None,
            errors=(),
            result=None,
        )

    async def test_a_new_task_is_shown_as_it_was_answered(self, queue: TaskQueue) -> None:
        answered = await enqueue_one(
            queue,
            NewTask(
                type="a.b:c-d_9",
                queue="Q" * 100,
                payload='{"z": [1.50, null], "a": "🦊", "n": 9007199254740993}',
                idempotency_key="order 66 \u00e9\u212a",
                priority=255,
                max_attempts=1000,
                delay=365 * DAY,
                retry_base=DAY,
                retry_cap=30 * DAY,
            ),
        )

        shown = await queue.get(answered.id)

        assert shown == answered
        assert shown.payload == '{"a": "🦊", "n": 9007199254740993, "z": [1.50, null]}'
        assert (shown.queue, shown.type) == ("Q" * 100, "a.b:c-d_9")
        assert shown.idempotency_key == "order 66 \u00e9\u212a"
        assert (shown.priority, shown.max_attempts) == (255, 1000)
        assert shown.run_after == shown.created_at + 365 * DAY

    async def test_an_empty_payload_is_an_empty_object(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue, NewTask(type="send", payload=""))

        assert task.payload == "{}"

    @pytest.mark.parametrize("delay", [timedelta(0), MICROSECOND, HOUR + 7 * MICROSECOND])
    async def test_a_delay_counts_from_now(self, queue: TaskQueue, delay: timedelta) -> None:
        task = await enqueue_one(queue, NewTask(type="send", delay=delay))

        assert task.run_after == task.created_at + delay

    async def test_a_moment_is_kept_to_the_microsecond_in_utc(
        self, queue: TaskQueue, time: Time
    ) -> None:
        moment = time.now().replace(microsecond=123_457) + HOUR
        in_kathmandu = moment.astimezone(timezone(timedelta(hours=5, minutes=45)))

        task = await enqueue_one(queue, NewTask(type="send", run_after=in_kathmandu))

        assert task.run_after == moment
        assert task.run_after.utcoffset() == timedelta(0)

    async def test_a_moment_in_the_past_means_now(self, queue: TaskQueue, time: Time) -> None:
        task = await enqueue_one(queue, NewTask(type="send", run_after=time.now() - DAY))

        assert task.run_after == task.created_at

    async def test_tasks_of_a_batch_are_leased_in_its_order(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, *[_SOUND] * 20)

        leased = await lease(queue, max_tasks=20)

        assert [each.task.id for each in leased] == [task.id for task in tasks]
        assert len({task.id for task in tasks}) == 20

    async def test_ids_are_uuids_of_version_7(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)

        assert len(task.id) == 36
        assert task.id == task.id.lower()
        assert task.id[14] == "7"

    async def test_a_refused_task_costs_the_others_nothing(self, queue: TaskQueue) -> None:
        answers = await queue.enqueue(
            [_SOUND, NewTask(type=""), _SOUND, NewTask(type="send", payload="[]"), _SOUND]
        )

        assert [isinstance(answer, Enqueued) for answer in answers] == [
            True,
            False,
            True,
            False,
            True,
        ]
        assert faults(answers[1]) == ["type"]
        assert faults(answers[3]) == ["payload"]
        assert len(await lease(queue, max_tasks=10)) == 3

    async def test_no_tasks_are_answered_with_nothing(self, queue: TaskQueue) -> None:
        assert await queue.enqueue([]) == []

    async def test_a_thousand_tasks_are_taken_at_once(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, *[_SOUND] * 1000)

        assert len({task.id for task in tasks}) == 1000

    async def test_more_than_a_thousand_tasks_are_refused_whole(self, queue: TaskQueue) -> None:
        with pytest.raises(InvalidArgumentError) as refusal:
            await queue.enqueue([_SOUND] * 1001)

        assert faults(refusal.value) == ["tasks"]
        assert await lease(queue) == []

    async def test_an_unknown_task_is_not_found(self, queue: TaskQueue) -> None:
        unknown = "01890000-0000-7000-8000-000000000000"

        with pytest.raises(TaskNotFoundError) as refusal:
            await queue.get(unknown)

        assert refusal.value.task_id == unknown

    async def test_an_id_may_be_spelt_in_capitals(self, queue: TaskQueue) -> None:
        task = await enqueue_one(queue)

        assert await queue.get(task.id.upper()) == task

    @pytest.mark.parametrize(
        "text", ["", "7", "not-a-uuid", "{" + "0" * 36 + "}", "\ud800", "\x00"]
    )
    async def test_an_id_that_is_no_uuid_is_refused(self, queue: TaskQueue, text: str) -> None:
        with pytest.raises(InvalidArgumentError) as refusal:
            await queue.get(text)

        assert faults(refusal.value) == ["task_id"]


class IdempotencyContract(QueueFixtures):
    """A key is given to one task of its queue, as long as the task is stored."""

    async def test_a_repeat_is_answered_with_the_first_task(self, queue: TaskQueue) -> None:
        first = await enqueue_one(queue, _keyed(payload='{"a": 1, "b": 2}'))

        [repeat] = await queue.enqueue([_keyed(payload='{ "b":2, "a":1 }')])

        assert isinstance(repeat, Enqueued)
        assert repeat.created is False
        assert repeat.task == attrs.evolve(first, payload=None)
        assert len(await lease(queue, max_tasks=10)) == 1

    @pytest.mark.parametrize(
        "other",
        [NewTask(type="send", payload='{"a": 2}'), NewTask(type="resize", payload='{"a": 1}')],
        ids=["another payload", "another type"],
    )
    async def test_a_key_is_not_given_to_other_content(
        self, queue: TaskQueue, other: NewTask
    ) -> None:
        first = await enqueue_one(queue, _keyed(payload='{"a": 1}'))

        [answer] = await queue.enqueue([attrs.evolve(other, idempotency_key="k-1")])

        assert isinstance(answer, IdempotencyKeyReusedError)
        assert answer.task_id == first.id
        assert len(await lease(queue, max_tasks=10)) == 1

    async def test_other_content_is_accepted_where_the_caller_says_so(
        self, queue: TaskQueue
    ) -> None:
        first = await enqueue_one(queue, _keyed(payload='{"a": 1}'))
        other = attrs.evolve(_keyed(payload='{"a": 2}'), allow_different_payload=True)

        [answer] = await queue.enqueue([other])

        assert isinstance(answer, Enqueued)
        assert (answer.created, answer.task.id) == (False, first.id)

    async def test_other_settings_do_not_make_other_content(self, queue: TaskQueue) -> None:
        first = await enqueue_one(queue, _keyed())

        [answer] = await queue.enqueue([attrs.evolve(_keyed(), priority=9, delay=MINUTE)])

        assert isinstance(answer, Enqueued)
        assert (answer.created, answer.task.id) == (False, first.id)
        assert answer.task.priority == 0

    async def test_a_key_belongs_to_its_queue(self, queue: TaskQueue) -> None:
        tasks = await enqueue(queue, _keyed(), attrs.evolve(_keyed(), queue="other"))

        assert tasks[0].id != tasks[1].id

    async def test_of_one_key_in_a_batch_the_first_is_stored(self, queue: TaskQueue) -> None:
        answers = await queue.enqueue(
            [_keyed(payload='{"n": 1}'), _SOUND, _keyed(payload='{"n": 2}'), _keyed('{"n": 1}')]
        )

        first, plain, other, repeat = answers
        assert isinstance(first, Enqueued)
        assert isinstance(plain, Enqueued)
        assert (first.created, plain.created) == (True, True)
        assert isinstance(other, IdempotencyKeyReusedError)
        assert isinstance(repeat, Enqueued)
        assert (repeat.created, repeat.task.id) == (False, first.task.id)

    async def test_sixty_four_at_once_make_one_task(self, queue: TaskQueue) -> None:
        answers = await asyncio.gather(*(queue.enqueue([_keyed()]) for _ in range(64)))

        made = [answer for [answer] in answers if isinstance(answer, Enqueued)]
        assert len(made) == 64
        assert sum(answer.created for answer in made) == 1
        assert len({answer.task.id for answer in made}) == 1

    async def test_a_key_is_held_by_a_task_that_runs_and_one_that_ended(
        self, queue: TaskQueue
    ) -> None:
        first = await enqueue_one(queue, _keyed())
        leased = await lease_one(queue)
        [while_leased] = await queue.enqueue([_keyed()])
        await settle(queue, Complete(ref=ref(leased), result='{"n": 1}'))

        [after_its_end] = await queue.enqueue([_keyed()])

        assert isinstance(while_leased, Enqueued)
        assert isinstance(after_its_end, Enqueued)
        assert while_leased.task.status == Status.LEASED
        assert after_its_end.task == attrs.evolve(
            await queue.get(first.id), payload=None, result=None
        )
        assert (while_leased.created, after_its_end.created) == (False, False)

    async def test_a_key_is_free_after_its_task_was_deleted(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        first = await enqueue_one(queue, _keyed())
        await admin.cancel([first.id])
        await admin.delete([first.id])

        second = await enqueue_one(queue, _keyed())

        assert second.id != first.id


def _keyed(payload: str = "{}") -> NewTask:
    return attrs.evolve(QUICK, payload=payload, idempotency_key="k-1")
