"""
What Python programs use to enqueue tasks and to look after them.

`Client` blocks and may be used from any thread; `AsyncClient` awaits, on the event loop
that opened it. Both may serve any number of callers at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack, ExitStack
from types import TracebackType
from typing import Self, Unpack

from ..domain.errors import NotSentError, TaskQueueError
from ..domain.limits import MAX_BATCH
from ..domain.requests import NewTask
from ..domain.views import Enqueued, QueueView, TaskPage, TaskView
from .connection import Connection, open_async, open_blocking, run_blocking
from .new_tasks import Payload, TaskOptions, new_task
from .task_lists import ListOptions, task_list


class TaskCalls:
    """Calls on a connection, with the results of single items raised or returned."""

    def __init__(self, connection: Connection | None) -> None:
        self._connection = connection

    @property
    def _opened(self) -> Connection:
        if self._connection is None:
            raise RuntimeError("the client is not open")
        return self._connection

    async def enqueue(
        self,
        type: str,  # noqa: A002  the word for it
        payload: Payload = None,
        **options: Unpack[TaskOptions],
    ) -> Enqueued:
        """
        Store a task.

        Concurrent calls travel to a server together, and again where no answer came, which
        never makes a second task.

        Raises:
            InvalidArgumentError: naming every fault.
            TypeError: there is no such option.
            IdempotencyKeyReusedError: the key belongs to a task with other content.
            TaskIdReusedError: so does the task id.
            NotSentError: the queue cannot be reached, and the task is not stored.
            StorageUnavailableError: no answer came in time, and the task may be stored; with
                an idempotency key or a task id the call may be repeated.
        """
        [outcome] = await self._opened.queue.enqueue([new_task(type, payload, **options)])
        if isinstance(outcome, TaskQueueError):
            raise outcome
        return outcome

    async def enqueue_many(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """
        Store any number of tasks, and answer for each in order.

        Up to 1000 tasks and 3 MiB travel together. Where a part fails, its tasks are answered
        with that error, those before with their outcome, and those behind with NotSentError.

        Raises:
            StorageUnavailableError: the first part failed, so that no outcome is known; it
                is a NotSentError if nothing was stored.
        """
        outcomes: list[Enqueued | TaskQueueError] = []
        for start in range(0, len(tasks), MAX_BATCH):
            batch = tasks[start : start + MAX_BATCH]
            try:
                outcomes += await self._opened.queue.enqueue(batch)
            except TaskQueueError as error:
                if not start:
                    raise
                behind = NotSentError(f"not sent, as what came before could not be: {error}")
                return (
                    outcomes + [error] * len(batch) + [behind] * (len(tasks) - start - len(batch))
                )
        return outcomes

    async def get(self, task_id: str) -> TaskView:
        """
        Return a task with its payload and result.

        Raises:
            TaskNotFoundError: no task has this id.
        """
        return await self._opened.queue.get(task_id)

    async def cancel(self, task_id: str) -> None:
        """
        Call a task off; if it is leased, its worker learns it by its next heartbeat.

        Raises:
            TaskFinishedError: it has ended in another way.
            TaskNotFoundError: no task has this id.
        """
        _raise_refusal(await self._opened.admin.cancel([task_id]))

    async def requeue(self, task_id: str) -> None:
        """
        Start a failed, dead or cancelled task anew, with all its attempts.

        Raises:
            TaskNotDeadError: it is none of these.
            TaskNotFoundError: no task has this id.
        """
        _raise_refusal(await self._opened.admin.requeue([task_id]))

    async def delete(self, task_id: str) -> None:
        """
        Remove a task that has ended, and free its idempotency key.

        Raises:
            TaskNotFinishedError: it has not ended.
            TaskNotFoundError: no task has this id.
        """
        _raise_refusal(await self._opened.admin.delete([task_id]))

    async def list_tasks(self, **options: Unpack[ListOptions]) -> TaskPage:
        """
        Return one page of tasks, newest first; `next_cursor` is for the next call.

        Raises:
            InvalidArgumentError: naming every fault.
            TypeError: there is no such option.
        """
        wanted, page = task_list(**options)
        return await self._opened.admin.list_tasks(wanted, page)

    async def list_queues(self) -> list[QueueView]:
        """Return every queue that holds a task or was paused, by name."""
        return await self._opened.admin.list_queues()

    async def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; leases that are out go on."""
        await self._opened.admin.pause_queue(queue)

    async def resume_queue(self, queue: str) -> None:
        """Lease from a queue again."""
        await self._opened.admin.resume_queue(queue)


class AsyncClient(TaskCalls):
    """A client that awaits: `async with leaseq.connect_async(url) as client`."""

    def __init__(self, url: str) -> None:
        super().__init__(None)
        self._url = url
        self._stack = AsyncExitStack()

    async def open(self) -> Self:
        """
        Open the connection, where `async with` does not fit; `close` has to follow.

        Raises:
            InvalidArgumentError: the URL is none.
            StorageError: the storage cannot be opened.
        """
        if self._connection is None:
            self._connection = await self._stack.enter_async_context(open_async(self._url))
        return self

    async def close(self) -> None:
        """Close the connection; closing again does nothing."""
        self._connection = None
        await self._stack.aclose()

    async def __aenter__(self) -> Self:
        """Open the connection."""
        return await self.open()

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        await self.close()


class Client:
    """A client that blocks: `with leaseq.connect(url) as client`."""

    def __init__(self, url: str) -> None:
        self._stack = ExitStack()
        self._calls = TaskCalls(self._stack.enter_context(open_blocking(url)))

    def close(self) -> None:
        """Close the connection; closing again does nothing."""
        self._calls = TaskCalls(None)
        self._stack.close()

    def __enter__(self) -> Self:
        """Return the client, which is open already."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the connection."""
        self.close()

    def enqueue(
        self,
        type: str,  # noqa: A002  the word for it
        payload: Payload = None,
        **options: Unpack[TaskOptions],
    ) -> Enqueued:
        """Store a task; see `AsyncClient.enqueue`."""
        return run_blocking(self._calls.enqueue(type, payload, **options))

    def enqueue_many(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store any number of tasks; see `AsyncClient.enqueue_many`."""
        return run_blocking(self._calls.enqueue_many(tasks))

    def get(self, task_id: str) -> TaskView:
        """Return a task; see `AsyncClient.get`."""
        return run_blocking(self._calls.get(task_id))

    def cancel(self, task_id: str) -> None:
        """Call a task off; see `AsyncClient.cancel`."""
        run_blocking(self._calls.cancel(task_id))

    def requeue(self, task_id: str) -> None:
        """Start a task anew; see `AsyncClient.requeue`."""
        run_blocking(self._calls.requeue(task_id))

    def delete(self, task_id: str) -> None:
        """Remove a task that has ended; see `AsyncClient.delete`."""
        run_blocking(self._calls.delete(task_id))

    def list_tasks(self, **options: Unpack[ListOptions]) -> TaskPage:
        """Return one page of tasks; see `AsyncClient.list_tasks`."""
        return run_blocking(self._calls.list_tasks(**options))

    def list_queues(self) -> list[QueueView]:
        """Return every queue; see `AsyncClient.list_queues`."""
        return run_blocking(self._calls.list_queues())

    def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; see `AsyncClient.pause_queue`."""
        run_blocking(self._calls.pause_queue(queue))

    def resume_queue(self, queue: str) -> None:
        """Lease from a queue again; see `AsyncClient.resume_queue`."""
        run_blocking(self._calls.resume_queue(queue))


def connect(url: str) -> Client:
    """
    Return a client of the queue at `url`, for code that blocks.

    `grpc://HOST:PORT` is a server, `sqlite:///FILE` and `postgresql://...` are storages
    used without one, `memory://NAME` lasts as long as somebody in this process holds it.

    Raises:
        InvalidArgumentError: the URL is none.
        StorageError: the storage cannot be opened.
    """
    return Client(url)


def connect_async(url: str) -> AsyncClient:
    """Return a client of the queue at `url` (see `connect`), for `async with`."""
    return AsyncClient(url)


def _raise_refusal(outcomes: Iterable[TaskQueueError | None]) -> None:
    for outcome in outcomes:
        if outcome is not None:
            raise outcome
