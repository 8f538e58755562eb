"""What is stored is there for every handle, and after the last one was closed."""

from __future__ import annotations

import asyncio

import pytest

from ...domain.errors import StorageError
from ...domain.ports import Storage
from ...domain.storing import Added, Change, Found, Queue, Replaced
from ...domain.task import Dead
from ..builders import EMAILS, NOON, a_demand, a_lease, a_task, some_grants
from .fixtures import Connect, StorageFixtures
from .replace import changed, stored
from .round_trip import STORED_TASKS


class HandlesContract(StorageFixtures):
    """Two handles on one storage see the same."""

    async def test_a_second_handle_sees_what_the_first_wrote(
        self, storage: Storage, request: pytest.FixtureRequest
    ) -> None:
        connect = self._connect_again(request)
        written = list(STORED_TASKS.values())
        await storage.tasks.add(written)
        await storage.queues.replace(Queue(name=EMAILS), Queue(name=EMAILS, paused=True, version=1))

        async with connect() as other:
            assert await stored(other.tasks, written) == written
            assert await other.queues.all() == [Queue(name=EMAILS, paused=True, version=1)]
            assert await other.tasks.claim(a_demand(), now=NOON) == Found()

    async def test_the_first_handle_sees_what_a_second_wrote(
        self, storage: Storage, request: pytest.FixtureRequest
    ) -> None:
        connect = self._connect_again(request)
        task = a_task(key="k-1")
        await storage.tasks.add([task])
        dead = changed(task, Dead(at=NOON))

        async with connect() as other:
            outcome = await other.tasks.replace([Change(old=task, new=dead)])

        assert outcome == [Replaced.DONE]
        assert await storage.tasks.replace([Change(old=task, new=dead)]) == [Replaced.STALE]
        assert await stored(storage.tasks, [task]) == [dead]

    async def test_two_handles_never_claim_one_task(
        self, storage: Storage, request: pytest.FixtureRequest
    ) -> None:
        connect = self._connect_again(request)
        written = [a_task() for _ in range(60)]
        await storage.tasks.add(written)
        grants = some_grants(80)

        async with connect() as other:
            answers = await asyncio.gather(
                *(
                    (storage, other)[turn % 2].tasks.claim(
                        a_demand(grants=grants[turn * 4 : turn * 4 + 4]), now=NOON
                    )
                    for turn in range(20)
                )
            )

        claimed = [task.id for found in answers for task in found.tasks]
        assert sorted(claimed) == sorted(task.id for task in written)

    async def test_two_handles_store_one_key_once(
        self, storage: Storage, request: pytest.FixtureRequest
    ) -> None:
        connect = self._connect_again(request)
        rivals = [a_task(key="k-1") for _ in range(20)]

        async with connect() as other:
            answers = await asyncio.gather(
                *(
                    (storage, other)[turn % 2].tasks.add([rival])
                    for turn, rival in enumerate(rivals)
                )
            )

        assert answers.count([Added.STORED]) == 1
        assert len(await stored(storage.tasks, rivals)) == 1

    def _connect_again(self, request: pytest.FixtureRequest) -> Connect:
        self.needs_shared()
        connect: Connect = request.getfixturevalue("connect")
        return connect


class OneHandleContract(StorageFixtures):
    """Two handles that do not know of each other never write to one storage."""

    async def test_a_second_handle_is_refused_until_the_first_is_closed(
        self, request: pytest.FixtureRequest
    ) -> None:
        self.needs_durable()
        if self.features.shared:
            pytest.skip(f"{type(self).__name__} declares Features(shared=True)")
        connect: Connect = request.getfixturevalue("connect")
        task = a_task()

        async with connect() as storage:
            with pytest.raises(StorageError):
                await connect().__aenter__()
            await storage.tasks.add([task])

        async with connect() as storage:
            assert await stored(storage.tasks, [task]) == [task]


class ReopenContract(StorageFixtures):
    """What was acknowledged is still there after everything was closed."""

    async def test_a_reopened_storage_still_has_everything(
        self, request: pytest.FixtureRequest
    ) -> None:
        self.needs_durable()
        connect: Connect = request.getfixturevalue("connect")
        written = list(STORED_TASKS.values())
        paused = Queue(name=EMAILS, paused=True, version=1)
        async with connect() as storage:
            await storage.tasks.add(written)
            await storage.queues.replace(Queue(name=EMAILS), paused)

        async with connect() as storage:
            assert await stored(storage.tasks, written) == written
            assert await storage.queues.all() == [paused]

    async def test_a_lease_outlives_the_handle_that_granted_it(
        self, request: pytest.FixtureRequest
    ) -> None:
        self.needs_durable()
        connect: Connect = request.getfixturevalue("connect")
        task = a_task()
        async with connect() as storage:
            await storage.tasks.add([task])
            [claimed] = (await storage.tasks.claim(a_demand(), now=NOON)).tasks

        async with connect() as storage:
            again = await storage.tasks.claim(a_demand(grants=[a_lease("other")]), now=NOON)
            assert again == Found()
            assert await stored(storage.tasks, [task]) == [claimed]
