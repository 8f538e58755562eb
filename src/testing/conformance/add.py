"""Adding: once under its id, once under its key."""

from __future__ import annotations

import asyncio
from typing import Final

import attrs
import pytest

from ...domain.ids import JsonText, QueueName
from ...domain.ports import TaskRepository
from ...domain.storing import Added, Change, PruneRule, Replaced
from ...domain.task import Cancelled, Dead, Failed, Queued, State, Status, Succeeded, Task
from ..builders import (
    EMAILS,
    HOUR,
    IMAGES,
    NOON,
    RESIZE,
    SEND,
    a_demand,
    a_task,
    a_task_id,
    leased_until,
)
from .round_trip import without_payload

HOLDERS: Final[dict[str, State]] = {
    "queued": Queued(),
    "leased": leased_until(NOON + HOUR),
    "succeeded": Succeeded(at=NOON, result=JsonText('{"n": 1}')),
    "failed": Failed(at=NOON),
    "dead": Dead(at=NOON),
    "cancelled": Cancelled(at=NOON),
}

# Alike to the eye or to a sloppy comparison, and yet different keys.
KEYS_APART: Final[dict[str, tuple[str, str]]] = {
    "composed and decomposed": ("caf\u00e9", "cafe\u0301"),
    "K and the Kelvin sign": ("K", "\u212a"),
    "upper and lower case": ("Order-1", "order-1"),
    "sharp s and two s": ("stra\u00dfe", "strasse"),
    "dotless i": ("\u0131", "i"),
    "a space and a no-break space": ("a b", "a\u00a0b"),
    "with a zero-width joiner": ("ab", "a\u200db"),
    "digits of two scripts": ("1", "\u0661"),
    "SQL wild cards": ("a_b", "a%b"),
}


class AddContract:
    """`add` stores a task once."""

    async def test_a_stored_task_can_be_leased(self, tasks: TaskRepository) -> None:
        task = a_task()

        outcome = await tasks.add([task])

        assert outcome == [Added.STORED]
        assert [t.id for t in (await tasks.claim(a_demand(), now=NOON)).tasks] == [task.id]

    async def test_tasks_without_key_are_all_stored(self, tasks: TaskRepository) -> None:
        twins = [a_task(), a_task()]

        outcomes = await tasks.add(twins)

        assert outcomes == [Added.STORED, Added.STORED]
        assert await _ids(tasks, twins) == {task.id for task in twins}

    async def test_no_tasks_have_no_outcomes(self, tasks: TaskRepository) -> None:
        outcomes = await tasks.add([])

        assert outcomes == []

    async def test_a_task_added_again_is_stored_and_unchanged(self, tasks: TaskRepository) -> None:
        task = a_task(key="k-1", payload='{"n": 1}')
        await tasks.add([task])
        changed = attrs.evolve(task, state=Dead(at=NOON), attempts=3, version=2, updated_at=NOON)
        await tasks.replace([Change(old=task, new=changed)])

        again = await tasks.add([task])

        assert again == [Added.STORED]
        assert (await tasks.load([task.id], with_payload=True)).tasks == (changed,)

    async def test_a_task_twice_in_a_batch_is_stored_once(self, tasks: TaskRepository) -> None:
        task, keyed = a_task(), a_task(key="k-1")

        outcomes = await tasks.add([task, keyed, task, keyed])

        assert outcomes == [Added.STORED] * 4
        assert (await tasks.load([task.id, keyed.id], with_payload=True)).tasks in {
            (task, keyed),
            (keyed, task),
        }

    @pytest.mark.parametrize("queue", [EMAILS, IMAGES])
    @pytest.mark.parametrize("key", [None, "k-1"])
    async def test_an_id_of_other_content_is_answered_with_what_has_it(
        self, tasks: TaskRepository, queue: QueueName, key: str | None
    ) -> None:
        task = a_task(key=key, payload='{"n": 1}')
        content = '{"n": 1}' if queue != task.queue else '{"n": 2}'
        rival = a_task(id=task.id, queue=queue, key=key, payload=content)

        [first, second] = await tasks.add([task, rival])
        [third] = await tasks.add([rival])

        loser = without_payload(task)
        assert (first, second, third) == (Added.STORED, loser, loser)
        assert (await tasks.load([task.id], with_payload=True)).tasks == (task,)

    async def test_a_thousand_are_added_at_once(self, tasks: TaskRepository) -> None:
        many = [a_task(key=f"k-{number % 700}") for number in range(1000)]

        outcomes = await tasks.add(many)

        assert outcomes == [
            Added.STORED if number < 700 else without_payload(many[number - 700])
            for number in range(1000)
        ]


class AddKeyContract:
    """`add` answers a taken key with the task that holds it."""

    async def test_a_taken_key_is_answered_with_its_holder(self, tasks: TaskRepository) -> None:
        holder = a_task(key="k-1", payload='{"n": 1}', type=SEND)
        late = a_task(key="k-1", payload='{"n": 2}', type=RESIZE)
        await tasks.add([holder])

        outcome = await tasks.add([late])

        assert outcome == [without_payload(holder)]
        assert await _ids(tasks, [holder, late]) == {holder.id}

    @pytest.mark.parametrize("state", HOLDERS.values(), ids=HOLDERS.keys())
    async def test_a_key_is_held_in_every_state(self, tasks: TaskRepository, state: State) -> None:
        holder = a_task(key="k-1", state=state)
        await tasks.add([holder])

        outcome = await tasks.add([a_task(key="k-1")])

        assert outcome == [without_payload(holder)]

    async def test_a_key_is_held_after_its_task_was_changed(self, tasks: TaskRepository) -> None:
        first = a_task(key="k-1", state=Dead(at=NOON))
        requeued = attrs.evolve(first, state=Queued(), version=2)
        await tasks.add([first])
        await tasks.replace([Change(old=first, new=requeued)])

        outcome = await tasks.add([a_task(key="k-1")])

        assert outcome == [without_payload(requeued)]

    async def test_of_one_key_in_a_batch_the_first_is_stored(self, tasks: TaskRepository) -> None:
        first, second, third = (a_task(key="k-1", payload=f'{{"n": {n}}}') for n in (1, 2, 3))

        outcomes = await tasks.add([first, second, third])

        assert outcomes == [Added.STORED, without_payload(first), without_payload(first)]

    async def test_the_first_in_a_batch_is_stored_even_if_its_id_sorts_last(
        self, tasks: TaskRepository
    ) -> None:
        first, second = (a_task(id=a_task_id(n), key="k-1") for n in (2, 1))

        outcomes = await tasks.add([first, second])

        assert outcomes == [Added.STORED, without_payload(first)]

    async def test_a_mixed_batch_of_new_tasks_is_answered_in_its_order(
        self, tasks: TaskRepository
    ) -> None:
        holder, known = a_task(key="b"), a_task()
        await tasks.add([holder, known])
        zebra, plain, taken, apple = a_task(key="z"), a_task(), a_task(key="b"), a_task(key="a")

        outcomes = await tasks.add([zebra, taken, plain, known, apple, a_task(key="z")])

        assert outcomes == [
            Added.STORED,
            without_payload(holder),
            Added.STORED,
            Added.STORED,
            Added.STORED,
            without_payload(zebra),
        ]
        assert await _ids(tasks, [zebra, plain, taken, apple]) == {zebra.id, plain.id, apple.id}

    async def test_a_key_belongs_to_its_queue(self, tasks: TaskRepository) -> None:
        outcomes = await tasks.add([a_task(key="k", queue=EMAILS), a_task(key="k", queue=IMAGES)])

        assert outcomes == [Added.STORED, Added.STORED]

    @pytest.mark.parametrize(("one", "other"), KEYS_APART.values(), ids=KEYS_APART.keys())
    async def test_keys_are_compared_as_sent(
        self, tasks: TaskRepository, one: str, other: str
    ) -> None:
        outcomes = await tasks.add([a_task(key=one), a_task(key=other)])

        assert outcomes == [Added.STORED, Added.STORED]

    async def test_a_deleted_task_frees_its_key(self, tasks: TaskRepository) -> None:
        gone, next_ = a_task(key="k-1", state=Dead(at=NOON)), a_task(key="k-1")
        await tasks.add([gone])
        deleted = await tasks.delete([gone])

        outcome = await tasks.add([next_])

        assert deleted == [Replaced.DONE]
        assert outcome == [Added.STORED]

    async def test_a_pruned_task_frees_its_key(self, tasks: TaskRepository) -> None:
        gone, next_ = a_task(key="k-1", state=Succeeded(at=NOON)), a_task(key="k-1")
        await tasks.add([gone])
        rule = PruneRule(status=Status.SUCCEEDED, finished_before=NOON + HOUR)
        pruned = await tasks.prune([rule], limit=10)

        outcome = await tasks.add([next_])

        assert pruned == 1
        assert outcome == [Added.STORED]


class AddRaceContract:
    """Of tasks with one key, in many calls that race, one is stored."""

    async def test_sixty_four_adds_of_one_key_store_one(self, tasks: TaskRepository) -> None:
        rivals = [a_task(key="k-1") for _ in range(64)]

        answers = await asyncio.gather(*(tasks.add([rival]) for rival in rivals))

        winners = [
            rival for rival, [answer] in zip(rivals, answers, strict=True) if answer is Added.STORED
        ]
        losers = [answer for [answer] in answers if answer is not Added.STORED]
        assert len(winners) == 1
        assert losers == [without_payload(winners[0])] * 63
        assert await _ids(tasks, rivals) == {winners[0].id}

    async def test_batches_of_the_same_keys_in_opposite_orders_store_each_once(
        self, tasks: TaskRepository
    ) -> None:
        keys = [f"k-{number}" for number in range(50)]
        batches = [
            [a_task(key=key) for key in (keys if turn % 2 else reversed(keys))] for turn in range(8)
        ]

        answers = await asyncio.gather(*(tasks.add(batch) for batch in batches))

        stored = [
            task
            for batch, answer in zip(batches, answers, strict=True)
            for task, outcome in zip(batch, answer, strict=True)
            if outcome is Added.STORED
        ]
        assert sorted(str(task.idempotency_key) for task in stored) == sorted(keys)
        assert await _ids(tasks, [task for batch in batches for task in batch]) == {
            task.id for task in stored
        }

    async def test_one_task_added_by_many_at_once_is_stored_for_all(
        self, tasks: TaskRepository
    ) -> None:
        task = a_task(key="k-1")

        answers = await asyncio.gather(*(tasks.add([task]) for _ in range(16)))

        assert answers == [[Added.STORED]] * 16
        assert (await tasks.load([task.id], with_payload=True)).tasks == (task,)


async def _ids(tasks: TaskRepository, wanted: list[Task]) -> set[str]:
    found = await tasks.load([task.id for task in wanted], with_payload=False)
    return {task.id for task in found.tasks}
