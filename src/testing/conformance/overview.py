"""What operators see: tasks page by page, and how full each queue is."""

from __future__ import annotations

from typing import Final

import attrs
import pytest

from ...domain.errors import InvalidArgumentError
from ...domain.ids import QueueName
from ...domain.ports import TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, NewTask, PageRequest, TaskFilter
from ...domain.task import Status, TaskError
from ...domain.views import Depth, QueueView, TaskView
from ..builders import HOUR, SECOND
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

_ALL = TaskFilter()

REFUSED_LISTS: Final[dict[str, tuple[TaskFilter, PageRequest, list[str]]]] = {
    "a bad queue": (TaskFilter(queue="?"), PageRequest(), ["queue"]),
    "a bad type": (TaskFilter(type="a b"), PageRequest(), ["type"]),
    "a bad key": (TaskFilter(idempotency_key=" k"), PageRequest(), ["idempotency_key"]),
    "a key with a lone surrogate": (
        TaskFilter(idempotency_key="\ud800"),
        PageRequest(),
        ["idempotency_key"],
    ),
    "no tasks": (_ALL, PageRequest(size=0), ["page_size"]),
    "over 1000 tasks": (_ALL, PageRequest(size=1001), ["page_size"]),
    "tasks beyond 64 bits": (_ALL, PageRequest(size=2**64), ["page_size"]),
    "a bad cursor": (_ALL, PageRequest(cursor="next"), ["cursor"]),
    "several faults": (
        TaskFilter(queue="?", type="?"),
        PageRequest(size=-1, cursor="?"),
        ["queue", "type", "page_size", "cursor"],
    ),
}


class ListContract(QueueFixtures):
    """`list_tasks` shows tasks, newest first, page by page."""

    async def test_nothing_is_listed_where_nothing_is_stored(self, admin: TaskAdmin) -> None:
        page = await admin.list_tasks(_ALL, PageRequest())

        assert (page.tasks, page.next_cursor) == ((), "")

    async def test_the_newest_come_first_without_payload(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        tasks = await enqueue(queue, QUICK, NewTask(type="resize", queue="images", priority=9))

        page = await admin.list_tasks(_ALL, PageRequest())

        assert list(page.tasks) == [attrs.evolve(task, payload=None) for task in reversed(tasks)]
        assert page.next_cursor == ""

    async def test_payload_and_result_are_shown_when_asked_for(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue, attrs.evolve(QUICK, payload='{"n": 1}'))
        held = await lease_one(queue)
        await settle(queue, Complete(ref=ref(held), result="[2]"))
        task = await queue.get(held.task.id)

        with_ = await admin.list_tasks(_ALL, PageRequest(with_payload=True))
        without = await admin.list_tasks(_ALL, PageRequest())

        assert with_.tasks == (task,)
        assert (task.payload, task.result) == ('{"n": 1}', "[2]")
        assert without.tasks == (attrs.evolve(task, payload=None, result=None),)

    async def test_errors_are_shown(self, queue: TaskQueue, admin: TaskAdmin) -> None:
        await enqueue_one(queue)
        held = await lease_one(queue)
        await settle(queue, Fail(ref=ref(held), error=TaskError(type="E", traceback="tb")))

        [shown] = (await admin.list_tasks(_ALL, PageRequest())).tasks

        assert shown == attrs.evolve(await queue.get(held.task.id), payload=None)
        assert shown.errors[0].traceback == "tb"

    async def test_each_part_of_a_filter_narrows(self, queue: TaskQueue, admin: TaskAdmin) -> None:
        plain, image, resize, keyed, gone = await enqueue(
            queue,
            NewTask(type="send"),
            NewTask(type="send", queue="images"),
            NewTask(type="resize"),
            NewTask(type="send", idempotency_key="k-1"),
            NewTask(type="send"),
        )
        await admin.cancel([gone.id])

        async def ids(wanted: TaskFilter) -> list[str]:
            return [task.id for task in (await admin.list_tasks(wanted, PageRequest())).tasks]

        assert await ids(TaskFilter(queue="images")) == [image.id]
        assert await ids(TaskFilter(type="resize")) == [resize.id]
        assert await ids(TaskFilter(idempotency_key="k-1")) == [keyed.id]
        assert await ids(TaskFilter(statuses=(Status.CANCELLED,))) == [gone.id]
        assert await ids(TaskFilter(statuses=(Status.QUEUED, Status.CANCELLED), type="send")) == [
            gone.id,
            keyed.id,
            image.id,
            plain.id,
        ]
        assert await ids(TaskFilter(queue="images", type="resize")) == []

    @pytest.mark.parametrize("size", [1, 3, 4, 12, 1000])
    async def test_a_walk_shows_each_task_once_while_others_come_and_go(
        self, queue: TaskQueue, admin: TaskAdmin, size: int
    ) -> None:
        tasks = await enqueue(queue, *[QUICK] * 12)
        shown: list[TaskView] = []
        cursor = ""

        while True:
            page = await admin.list_tasks(_ALL, PageRequest(size=size, cursor=cursor))
            shown += page.tasks
            cursor = page.next_cursor
            if not cursor:
                break
            await enqueue_one(queue)
            await admin.cancel([page.tasks[0].id])
            await admin.delete([page.tasks[0].id])

        assert [task.id for task in shown] == [task.id for task in reversed(tasks)]

    async def test_a_full_last_page_is_the_last(self, queue: TaskQueue, admin: TaskAdmin) -> None:
        await enqueue(queue, *[QUICK] * 3)

        page = await admin.list_tasks(_ALL, PageRequest(size=3))

        assert (len(page.tasks), page.next_cursor) == (3, "")

    async def test_pages_with_payload_are_bounded(self, queue: TaskQueue, admin: TaskAdmin) -> None:
        big = NewTask(type="send", payload='{"a": "' + "x" * 1_000_000 + '"}')
        tasks = await enqueue(queue, *[big] * 7)
        sizes: list[int] = []
        shown: list[str] = []
        cursor = ""

        while not sizes or cursor:
            page = await admin.list_tasks(_ALL, PageRequest(cursor=cursor, with_payload=True))
            sizes.append(len(page.tasks))
            shown += [task.id for task in page.tasks]
            cursor = page.next_cursor

        assert shown == [task.id for task in reversed(tasks)]
        assert max(sizes) <= 3
        assert min(sizes) >= 1

    async def test_a_page_of_long_errors_is_bounded(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        count = 300
        tasks = await enqueue(queue, *[QUICK] * count)
        long = TaskError(type="E", message="m", traceback="x" * 100_000)
        await queue.settle(
            [Fail(ref=ref(each), error=long) for each in await lease(queue, max_tasks=count)]
        )
        shown: list[str] = []
        cursor, pages = "", 0

        while not pages or cursor:
            page = await admin.list_tasks(_ALL, PageRequest(size=1000, cursor=cursor))
            shown += [task.id for task in page.tasks]
            cursor, pages = page.next_cursor, pages + 1

        assert shown == [task.id for task in reversed(tasks)]
        assert pages > 1

    @pytest.mark.parametrize(
        ("wanted", "page", "fields"), REFUSED_LISTS.values(), ids=REFUSED_LISTS.keys()
    )
    async def test_a_bad_list_is_refused(
        self, admin: TaskAdmin, wanted: TaskFilter, page: PageRequest, fields: list[str]
    ) -> None:
        with pytest.raises(InvalidArgumentError) as refusal:
            await admin.list_tasks(wanted, page)

        assert faults(refusal.value) == fields


class QueuesContract(QueueFixtures):
    """`list_queues` shows how full each queue is; queues can be paused and resumed."""

    async def test_no_queue_is_shown_where_nothing_is_stored(self, admin: TaskAdmin) -> None:
        assert await admin.list_queues() == []

    async def test_each_queue_is_shown_with_its_depths(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue(
            queue,
            *[NewTask(type="send", queue="b", delay=HOUR)] * 3,
            *[NewTask(type="send", queue="a")] * 2,
        )
        [held] = await lease(queue, queues=["a"])
        await lease(queue, queues=["a"])
        await settle(queue, Complete(ref=ref(held)))
        await admin.pause_queue("c")

        shown = await admin.list_queues()

        one = Depth(count=1, exact=True)
        assert shown == [
            _queue_view("a", depths={Status.LEASED: one, Status.SUCCEEDED: one}),
            _queue_view("b", depths={Status.QUEUED: Depth(count=3, exact=True)}),
            _queue_view("c", paused=True),
        ]

    async def test_the_wait_of_the_task_due_longest_is_shown(
        self, queue: TaskQueue, admin: TaskAdmin, time: Time
    ) -> None:
        await enqueue_one(queue)
        await time.pass_by(SECOND / 2)
        await enqueue_one(queue)
        await time.pass_by(SECOND / 2)

        [shown] = await admin.list_queues()

        assert shown.oldest_due is not None
        assert SECOND <= shown.oldest_due < 10 * SECOND
        if self.manual_time:
            assert shown.oldest_due == SECOND

    async def test_a_paused_queue_takes_tasks_and_leases_go_on(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue(queue, QUICK)
        held = await lease_one(queue)
        await admin.pause_queue("default")
        await enqueue(queue, QUICK)

        nothing = await lease(queue)
        done = await settle(queue, Complete(ref=ref(held)))

        assert (nothing, done) == ([], None)

    async def test_pausing_and_resuming_may_be_repeated(
        self, queue: TaskQueue, admin: TaskAdmin
    ) -> None:
        await enqueue_one(queue)
        for _ in range(2):
            await admin.pause_queue("default")
            await admin.pause_queue("default")
            assert [each.paused for each in await admin.list_queues()] == [True]
            await admin.resume_queue("default")
            await admin.resume_queue("default")
            assert [each.paused for each in await admin.list_queues()] == [False]

        assert len(await lease(queue)) == 1

    @pytest.mark.parametrize("name", ["", "a b", "q" * 101, "\ud800", "a\x00"])
    async def test_a_bad_name_is_refused(self, admin: TaskAdmin, name: str) -> None:
        with pytest.raises(InvalidArgumentError) as paused:
            await admin.pause_queue(name)
        with pytest.raises(InvalidArgumentError) as resumed:
            await admin.resume_queue(name)

        assert faults(paused.value) == ["queue"]
        assert faults(resumed.value) == ["queue"]


def _queue_view(
    name: str, *, paused: bool = False, depths: dict[Status, Depth] | None = None
) -> QueueView:
    return QueueView(name=QueueName(name), paused=paused, depths=depths or {}, oldest_due=None)
