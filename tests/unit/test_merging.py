from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from time import monotonic

import pytest

from leaseq.adapters.grpc.merging import AioMerger, ThreadMerger
from leaseq.domain.errors import StorageError, StorageUnavailableError
from leaseq.entrypoints.connection import run_blocking

SOON = timedelta(seconds=20)
AT_ONCE = timedelta(seconds=0.3)
WAIT = SOON.total_seconds()


class Server:
    """Answers each item with its negative; a batch with an item of `held` waits for `release`."""

    def __init__(self, *held: int) -> None:
        self.batches: list[list[int]] = []
        self._held = set(held)
        self._changed = threading.Condition()

    async def send(self, items: Sequence[int]) -> list[int]:
        with self._changed:
            self.batches.append(list(items))
            self._changed.notify_all()
            assert self._changed.wait_for(lambda: self._held.isdisjoint(items), WAIT)
        return [-item for item in items]

    def has(self, *items: int) -> bool:
        """Wait until these items have come."""
        with self._changed:
            return self._changed.wait_for(
                lambda: {item for batch in self.batches for item in batch} >= set(items), WAIT
            )

    def release(self) -> None:
        with self._changed:
            self._held.clear()
            self._changed.notify_all()


class Threads:
    """Callers, each in a thread of its own."""

    def __init__(self, merger: ThreadMerger[int, int]) -> None:
        self._merger = merger
        self._pool = ThreadPoolExecutor(64)

    def submit(self, item: int) -> Future[int]:
        return self._pool.submit(run_blocking, self._merger.submit(item))


def in_threads(server: Server, *, within: timedelta = SOON) -> Threads:
    return Threads(ThreadMerger(server.send, within=within, now=monotonic))


def test_a_caller_that_is_alone_is_served_at_once_and_by_itself() -> None:
    server = Server()
    merger: ThreadMerger[int, int] = ThreadMerger(server.send, within=SOON, now=monotonic)

    answers = [run_blocking(merger.submit(item)) for item in (1, 2, 3)]

    assert answers == [-1, -2, -3]
    assert server.batches == [[1], [2], [3]]


def test_threads_share_batches_and_each_gets_its_own_answer() -> None:
    server = Server(1, 2)
    threads = in_threads(server)
    first = [threads.submit(1), threads.submit(2)]
    assert server.has(1, 2)

    others = [threads.submit(item) for item in range(3, 40)]
    answers = [other.result(WAIT) for other in others]
    server.release()

    assert [each.result(WAIT) for each in first] == [-1, -2]
    assert answers == [-item for item in range(3, 40)]
    assert sorted(item for batch in server.batches for item in batch) == list(range(1, 40))
    assert max(len(batch) for batch in server.batches) > 1


def test_a_server_that_does_not_answer_holds_up_only_what_it_was_sent() -> None:
    server = Server(1, 2, 3)
    threads = in_threads(server)
    stuck = [threads.submit(item) for item in (1, 2, 3)]
    assert server.has(1, 2, 3)

    answer = threads.submit(4).result(WAIT)
    server.release()

    assert answer == -4
    assert [each.result(WAIT) for each in stuck] == [-1, -2, -3]


def test_what_goes_wrong_is_told_to_every_caller_of_the_batch() -> None:
    server = Server(1)

    async def send(items: Sequence[int]) -> list[int]:
        if 1 in items:
            return await server.send(items)
        raise StorageError("broken")

    threads = Threads(ThreadMerger(send, within=SOON, now=monotonic))
    first = threads.submit(1)
    assert server.has(1)

    errors = [each.exception(WAIT) for each in [threads.submit(2), threads.submit(3)]]
    server.release()

    assert [str(error) for error in errors] == ["broken", "broken"]
    assert first.result(WAIT) == -1


def test_a_thread_gives_up_at_its_deadline_though_another_has_sent_its_item() -> None:
    items = range(3, 33)
    server = Server(1, 2, *items)
    threads = in_threads(server, within=AT_ONCE)
    first = [threads.submit(1), threads.submit(2)]
    assert server.has(1, 2)

    calls = {item: threads.submit(item) for item in items}
    assert server.has(*items)
    senders = {batch[0] for batch in server.batches}
    errors = [call.exception(WAIT) for item, call in calls.items() if item not in senders]
    server.release()

    assert errors
    assert {type(error) for error in errors} == {StorageUnavailableError}
    assert [each.result(WAIT) for each in first] == [-1, -2]


def test_what_a_forked_child_inherits_is_forgotten() -> None:
    server = Server(1, 2)
    merger: ThreadMerger[int, int] = ThreadMerger(server.send, within=SOON, now=monotonic)
    threads = Threads(merger)
    of_the_parent = [threads.submit(1), threads.submit(2)]
    assert server.has(1, 2)

    merger.forget()
    answer = run_blocking(merger.submit(3))
    server.release()

    assert answer == -3
    assert server.batches[-1] == [3]
    assert [each.result(WAIT) for each in of_the_parent] == [-1, -2]


async def test_tasks_of_a_loop_share_batches_and_each_gets_its_own_answer() -> None:
    batches: list[list[int]] = []

    async def send(items: Sequence[int]) -> list[int]:
        batches.append(list(items))
        await asyncio.sleep(0)
        return [-item for item in items]

    merger = AioMerger(send, within=SOON)

    answers = await asyncio.gather(*(merger.submit(item) for item in range(50)))

    assert answers == [-item for item in range(50)]
    assert len(batches) <= 3


async def test_a_cancelled_task_of_a_loop_harms_no_other() -> None:
    opened, entered = asyncio.Event(), asyncio.Event()

    async def send(items: Sequence[int]) -> list[int]:
        entered.set()
        await opened.wait()
        return [-item for item in items]

    merger = AioMerger(send, within=SOON)
    callers = [asyncio.create_task(merger.submit(item)) for item in range(4)]
    await entered.wait()

    callers[0].cancel()
    callers[2].cancel()
    await asyncio.wait(callers[:1])
    opened.set()
    answers = await asyncio.gather(*callers, return_exceptions=True)

    assert isinstance(answers[0], asyncio.CancelledError)
    assert isinstance(answers[2], asyncio.CancelledError)
    assert (answers[1], answers[3]) == (-1, -3)
    assert await merger.submit(9) == -9


async def test_a_task_of_a_loop_gives_up_at_its_deadline() -> None:
    never = asyncio.Event()

    async def send(items: Sequence[int]) -> list[int]:
        await never.wait()
        return list(items)

    merger = AioMerger(send, within=AT_ONCE)
    alone = asyncio.create_task(merger.submit(1))
    await asyncio.sleep(0)

    with pytest.raises(StorageUnavailableError, match=r"no answer came within 0\.3 s"):
        await merger.submit(2)

    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
