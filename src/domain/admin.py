"""What operators ask for, carried out in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

import attrs

from . import lifecycle, validation
from .changes import Decision, TaskChanger, Wish, sound_wish
from .errors import ContendedError, TaskQueueError
from .ids import IdempotencyKey, QueueName, TaskId, TaskType
from .limits import MAX_LEASE_PAYLOAD_BYTES
from .ports import Clock, QueueRepository, TaskRepository, WakeUp
from .requests import PageRequest, TaskFilter
from .snapshots import Snapshots
from .storing import Found, Queue, QueueDepths, Replaced, Selection
from .task import Queued, Succeeded, Task
from .views import QueueView, TaskPage, view

_TRIES: Final = 3


@attrs.define(kw_only=True)
class AdminService:
    """A `TaskAdmin` on a storage."""

    _tasks: TaskRepository
    _queues: QueueRepository
    _clock: Clock
    _wake_up: WakeUp
    _changer: TaskChanger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        """Make what every change goes through."""
        self._changer = TaskChanger(self._tasks, self._clock, Snapshots(capacity=0))

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        """Return one page; see `TaskAdmin.list_tasks`."""
        before = validation.task_list(wanted, page)
        selection = Selection(
            queue=QueueName(wanted.queue) if wanted.queue else None,
            type=TaskType(wanted.type) if wanted.type else None,
            statuses=wanted.statuses,
            idempotency_key=IdempotencyKey(wanted.idempotency_key) or None,
            before=before,
        )
        # One more than asked for tells whether another page follows.
        found = await self._tasks.search(
            selection, limit=page.size + 1, with_payload=page.with_payload
        )
        return _page(found, page)

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Start tasks anew; see `TaskAdmin.requeue`."""
        return await self._change_each(task_ids, lambda task, now: lifecycle.requeue(task, now=now))

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Call tasks off; see `TaskAdmin.cancel`."""
        return await self._change_each(task_ids, lambda task, now: lifecycle.cancel(task, now=now))

    async def _change_each(
        self, task_ids: Sequence[str], decide: Decision
    ) -> list[TaskQueueError | None]:
        validation.batch_size("task_ids", task_ids)
        answers = await self._changer.make(
            [sound_wish(partial(_wish, text, decide)) for text in task_ids]
        )
        queued = {
            answer.queue
            for answer in answers
            if isinstance(answer, Task) and isinstance(answer.state, Queued)
        }
        if queued:
            self._wake_up.notify(queued)
        return [answer if isinstance(answer, TaskQueueError) else None for answer in answers]

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Remove tasks that have ended; see `TaskAdmin.delete`."""
        validation.batch_size("task_ids", task_ids)
        wishes = [sound_wish(partial(_wish, text, _finished)) for text in task_ids]
        judged = await self._changer.make(wishes)
        ended = {answer.id: answer for answer in judged if isinstance(answer, Task)}
        outcomes = dict(
            zip(ended, await self._tasks.delete(list(ended.values())), strict=True) if ended else ()
        )
        return [
            answer
            if isinstance(answer, TaskQueueError)
            else None
            if outcomes[answer.id] is Replaced.DONE
            else ContendedError(f"task {answer.id}")
            for answer in judged
        ]

    async def list_queues(self) -> list[QueueView]:
        """Return every queue; see `TaskAdmin.list_queues`."""
        now = self._clock.now()
        depths = {stats.queue: stats for stats in await self._tasks.stats(now=now)}
        kept = {queue.name: queue for queue in await self._queues.all()}
        return [
            _queue_view(name, depths.get(name), kept.get(name), now=now)
            for name in sorted(depths.keys() | kept.keys())
        ]

    async def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; see `TaskAdmin.pause_queue`."""
        await self._set(validation.queue_name(queue), partial(_paused, paused=True))

    async def resume_queue(self, queue: str) -> None:
        """Lease from a queue again; see `TaskAdmin.resume_queue`."""
        name = validation.queue_name(queue)
        await self._set(name, partial(_paused, paused=False))
        self._wake_up.notify({name})

    async def _set(self, name: QueueName, change: Callable[[Queue], Queue]) -> None:
        for _ in range(_TRIES):
            old = await self._queues.load(name)
            new = change(old)
            if new == old or await self._queues.replace(
                old, attrs.evolve(new, version=old.version + 1)
            ):
                return
        raise ContendedError(f"queue {name}")


def _wish(text: str, decide: Decision) -> Wish:
    return Wish(task_id=validation.task_id(text), decide=decide)


def _finished(task: Task, _: datetime) -> Task:
    lifecycle.require_finished(task)
    return task


def _paused(queue: Queue, *, paused: bool) -> Queue:
    return attrs.evolve(queue, paused=paused)


def _queue_view(
    name: QueueName, depths: QueueDepths | None, kept: Queue | None, *, now: datetime
) -> QueueView:
    since = depths.oldest_due_since if depths else None
    return QueueView(
        name=name,
        paused=kept.paused if kept else False,
        depths=dict(depths.depths) if depths else {},
        oldest_due=now - since if since else None,
    )


def _page(found: Found, page: PageRequest) -> TaskPage:
    readable = {task.id: task for task in found.tasks}
    ids = sorted([*readable, *found.unreadable], reverse=True)
    shown: list[Task] = []
    room = MAX_LEASE_PAYLOAD_BYTES
    last: TaskId | None = None
    for task_id in ids[: page.size]:
        task = readable.get(task_id)
        if task is not None:
            room -= _bytes_shown(task)
            if shown and room < 0:
                break
            shown.append(task)
        last = task_id
    more = last is not None and last != ids[-1]
    return TaskPage(
        tasks=tuple(view(task) for task in shown), next_cursor=last if more and last else ""
    )


def _bytes_shown(task: Task) -> int:
    result = task.state.result if isinstance(task.state, Succeeded) else None
    texts = [task.payload or "", result or "", task.last_error or ""]
    texts += [text for error in task.errors for text in (error.message, error.traceback)]
    return sum(len(text.encode()) for text in texts)
