"""Claiming: only of the queue, of the types, within the bytes; nothing of a paused queue."""

from __future__ import annotations

from ...domain.ids import QueueName, TaskType
from ...domain.json_text import normalise_object
from ...domain.ports import QueueRepository, TaskRepository
from ...domain.storing import Found, Queue
from ..builders import (
    EMAILS,
    IMAGES,
    NOON,
    RESIZE,
    SEND,
    a_demand,
    a_lease,
    a_task,
    a_task_id,
    some_grants,
)
from .claim import IN_ORDER


class ClaimFilterContract:
    """`claim` keeps to its queue, to its types and off paused queues."""

    async def test_only_tasks_of_the_queue_are_leased(self, tasks: TaskRepository) -> None:
        other, own = a_task(queue=IMAGES), a_task(queue=EMAILS)
        await tasks.add([other, own])

        found = await tasks.claim(a_demand(queue=EMAILS, grants=some_grants(2)), now=NOON)

        assert [task.id for task in found.tasks] == [own.id]

    async def test_queues_are_told_apart_by_case(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task(queue=QueueName("Emails"))])

        found = await tasks.claim(a_demand(queue=QueueName("emails")), now=NOON)

        assert found == Found()

    async def test_only_tasks_of_the_type_are_leased(self, tasks: TaskRepository) -> None:
        unwanted, wanted = a_task(type=RESIZE, priority=9), a_task(type=SEND)
        await tasks.add([unwanted, wanted])

        found = await tasks.claim(a_demand(types=[SEND], grants=some_grants(2)), now=NOON)

        assert [task.id for task in found.tasks] == [wanted.id]

    async def test_tasks_of_several_types_are_leased_in_one_order(
        self, tasks: TaskRepository
    ) -> None:
        strange = a_task(id=a_task_id(5), priority=255, type=TaskType("strange"))
        await tasks.add([*sorted(IN_ORDER, key=lambda task: task.id), strange])

        found = await tasks.claim(a_demand(types=[RESIZE, SEND], grants=some_grants(9)), now=NOON)

        assert [task.id for task in found.tasks] == [task.id for task in IN_ORDER]

    async def test_a_type_that_no_task_has_finds_nothing(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task(type=SEND)])

        found = await tasks.claim(a_demand(types=[TaskType("Send"), RESIZE]), now=NOON)

        assert found == Found()

    async def test_nothing_of_a_paused_queue_is_leased(
        self, tasks: TaskRepository, queues: QueueRepository
    ) -> None:
        task, other = a_task(queue=EMAILS), a_task(queue=IMAGES)
        await tasks.add([task, other])
        await queues.replace(Queue(name=EMAILS), Queue(name=EMAILS, paused=True, version=1))

        paused = await tasks.claim(a_demand(queue=EMAILS), now=NOON)
        open_ = await tasks.claim(a_demand(queue=IMAGES), now=NOON)

        assert paused == Found()
        assert [task.id for task in open_.tasks] == [other.id]

    async def test_a_resumed_queue_is_leased_from_again(
        self, tasks: TaskRepository, queues: QueueRepository
    ) -> None:
        task = a_task(queue=EMAILS)
        await tasks.add([task])
        paused = Queue(name=EMAILS, paused=True, version=1)
        await queues.replace(Queue(name=EMAILS), paused)
        await queues.replace(paused, Queue(name=EMAILS, paused=False, version=2))

        found = await tasks.claim(a_demand(queue=EMAILS), now=NOON)

        assert [task.id for task in found.tasks] == [task.id]


class ClaimBytesContract:
    """`claim` keeps to `max_bytes`, but for the first task."""

    async def test_tasks_that_fill_the_bytes_exactly_are_leased(
        self, tasks: TaskRepository
    ) -> None:
        await tasks.add([a_task(payload=_payload_of(100)) for _ in range(4)])

        found = await tasks.claim(a_demand(grants=some_grants(4), max_bytes=300), now=NOON)

        assert len(found.tasks) == 3

    async def test_a_task_one_byte_too_large_ends_the_claim(self, tasks: TaskRepository) -> None:
        sizes = (100, 101, 10)
        stored = [a_task(payload=_payload_of(size)) for size in sizes]
        await tasks.add(stored)

        found = await tasks.claim(a_demand(grants=some_grants(3), max_bytes=200), now=NOON)

        assert [task.id for task in found.tasks] == [stored[0].id]

    async def test_the_first_task_is_leased_whatever_its_size(self, tasks: TaskRepository) -> None:
        first, second = a_task(payload=_payload_of(5000)), a_task(payload="{}")
        await tasks.add([first, second])

        found = await tasks.claim(a_demand(grants=some_grants(2), max_bytes=1), now=NOON)

        assert [task.id for task in found.tasks] == [first.id]

    async def test_bytes_are_those_of_utf_8(self, tasks: TaskRepository) -> None:
        await tasks.add([a_task(payload='{"t": "' + "ä" * 45 + '"}') for _ in range(2)])

        found = await tasks.claim(a_demand(grants=some_grants(2), max_bytes=197), now=NOON)

        assert [task.payload_bytes for task in found.tasks] == [99]

    async def test_tasks_left_out_for_their_size_stay_queued(self, tasks: TaskRepository) -> None:
        first, second = a_task(payload=_payload_of(100)), a_task(payload=_payload_of(100))
        await tasks.add([first, second])
        await tasks.claim(a_demand(grants=some_grants(2), max_bytes=199), now=NOON)

        found = await tasks.claim(a_demand(grants=[a_lease("next")], max_bytes=199), now=NOON)

        assert [(task.id, task.lease_number) for task in found.tasks] == [(second.id, 1)]


def _payload_of(size: int) -> str:
    payload = '{"t": "' + "x" * (size - 9) + '"}'
    assert len(normalise_object(payload)) == size
    return payload
