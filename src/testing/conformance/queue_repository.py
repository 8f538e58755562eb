"""The suite for `QueueRepository`."""

from __future__ import annotations

import asyncio

import attrs
import pytest

from ...domain.ids import QueueName
from ...domain.ports import QueueRepository
from ...domain.storing import Queue
from ..builders import EMAILS, IMAGES
from .fixtures import StorageFixtures


class QueueRepositoryConformance(StorageFixtures):
    """
    Inherit this and supply `connect` or `storage`.

    See `StorageFixtures`.
    """

    pytestmark = pytest.mark.asyncio

    async def test_a_queue_nobody_spoke_of_has_its_defaults_at_version_0(
        self, queues: QueueRepository
    ) -> None:
        queue = await queues.load(EMAILS)

        assert queue == Queue(name=EMAILS, paused=False, version=0)

    async def test_loading_a_queue_does_not_store_it(self, queues: QueueRepository) -> None:
        await queues.load(EMAILS)

        assert await queues.all() == []

    async def test_a_queue_comes_back_as_it_was_stored(self, queues: QueueRepository) -> None:
        paused = Queue(name=EMAILS, paused=True, version=1)

        stored = await queues.replace(Queue(name=EMAILS), paused)

        assert stored is True
        assert await queues.load(EMAILS) == paused
        assert await queues.load(IMAGES) == Queue(name=IMAGES)

    async def test_a_stored_queue_is_replaced(self, queues: QueueRepository) -> None:
        first = Queue(name=EMAILS, paused=True, version=1)
        second = Queue(name=EMAILS, paused=False, version=2)
        await queues.replace(Queue(name=EMAILS), first)

        stored = await queues.replace(first, second)

        assert stored is True
        assert await queues.load(EMAILS) == second
        assert await queues.all() == [second]

    async def test_a_change_of_an_older_version_changes_nothing(
        self, queues: QueueRepository
    ) -> None:
        unspoken = Queue(name=EMAILS)
        first = Queue(name=EMAILS, paused=True, version=1)
        second = Queue(name=EMAILS, paused=True, version=2)
        await queues.replace(unspoken, first)
        await queues.replace(first, second)

        of_none = await queues.replace(unspoken, Queue(name=EMAILS, version=1))
        of_first = await queues.replace(first, Queue(name=EMAILS, version=2))

        assert of_none is False
        assert of_first is False
        assert await queues.load(EMAILS) == second

    async def test_a_change_of_a_version_yet_to_come_changes_nothing(
        self, queues: QueueRepository
    ) -> None:
        ahead = Queue(name=EMAILS, version=3)

        stored = await queues.replace(ahead, attrs.evolve(ahead, paused=True, version=4))

        assert stored is False
        assert await queues.all() == []

    async def test_all_are_told_by_name(self, queues: QueueRepository) -> None:
        names = [QueueName(name) for name in ("b", "B", "a.10", "a-1", "a:1", "a_1", "Z", "9")]
        kept = [
            Queue(name=name, paused=turn % 2 == 0, version=1) for turn, name in enumerate(names)
        ]
        for queue in kept:
            await queues.replace(Queue(name=queue.name), queue)

        told = await queues.all()

        assert told == sorted(kept, key=lambda queue: queue.name)

    async def test_of_many_first_changes_one_is_stored(self, queues: QueueRepository) -> None:
        rivals = [Queue(name=EMAILS, paused=turn % 2 == 0, version=1) for turn in range(20)]

        answers = await asyncio.gather(
            *(queues.replace(Queue(name=EMAILS), rival) for rival in rivals)
        )

        assert answers.count(True) == 1
        assert await queues.load(EMAILS) == rivals[answers.index(True)]

    async def test_of_many_later_changes_one_is_stored(self, queues: QueueRepository) -> None:
        first = Queue(name=EMAILS, version=1)
        rivals = [Queue(name=EMAILS, paused=turn % 2 == 0, version=2) for turn in range(20)]
        await queues.replace(Queue(name=EMAILS), first)

        answers = await asyncio.gather(*(queues.replace(first, rival) for rival in rivals))

        assert answers.count(True) == 1
        assert await queues.load(EMAILS) == rivals[answers.index(True)]
