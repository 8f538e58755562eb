"""The operator's desk behind the wire."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import attrs

from ...domain import validation
from ...domain.errors import TaskQueueError
from ...domain.requests import PageRequest, TaskFilter
from ...domain.views import QueueView, TaskPage
from . import methods
from .admin_codec import read_page, read_queue, read_task_result, write_task_list
from .caller import Caller
from .generated import admin_pb2 as pb
from .methods import Method, Q, R
from .scalars import short_text


@attrs.frozen(kw_only=True)
class GrpcTaskAdmin:
    """A `TaskAdmin` that asks a server."""

    _caller: Caller
    _timeout: timedelta

    async def list_tasks(self, wanted: TaskFilter, page: PageRequest) -> TaskPage:
        """Return one page; see `TaskAdmin.list_tasks`."""
        return read_page(await self._repeatable(methods.LIST_TASKS, write_task_list(wanted, page)))

    async def requeue(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Start tasks anew; see `TaskAdmin.requeue`."""
        request = pb.RequeueTasksRequest(task_ids=_sendable(task_ids))
        reply = await self._once(methods.REQUEUE_TASKS, request)
        return [read_task_result(result) for result in reply.results]

    async def cancel(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Call tasks off; see `TaskAdmin.cancel`."""
        request = pb.CancelTasksRequest(task_ids=_sendable(task_ids))
        reply = await self._repeatable(methods.CANCEL_TASKS, request)
        return [read_task_result(result) for result in reply.results]

    async def delete(self, task_ids: Sequence[str]) -> list[TaskQueueError | None]:
        """Remove tasks; see `TaskAdmin.delete`."""
        request = pb.DeleteTasksRequest(task_ids=_sendable(task_ids))
        reply = await self._once(methods.DELETE_TASKS, request)
        return [read_task_result(result) for result in reply.results]

    async def list_queues(self) -> list[QueueView]:
        """Return every queue; see `TaskAdmin.list_queues`."""
        reply = await self._repeatable(methods.LIST_QUEUES, pb.ListQueuesRequest())
        return [read_queue(queue) for queue in reply.queues]

    async def pause_queue(self, queue: str) -> None:
        """Stop leasing from a queue; see `TaskAdmin.pause_queue`."""
        request = pb.PauseQueueRequest(queue=short_text(queue))
        await self._repeatable(methods.PAUSE_QUEUE, request)

    async def resume_queue(self, queue: str) -> None:
        """Lease from a queue again; see `TaskAdmin.resume_queue`."""
        request = pb.ResumeQueueRequest(queue=short_text(queue))
        await self._repeatable(methods.RESUME_QUEUE, request)

    async def _repeatable(self, method: Method[Q, R], request: Q) -> R:
        return await self._caller.call(method, request, within=self._timeout, repeatable=True)

    async def _once(self, method: Method[Q, R], request: Q) -> R:
        # What was done already is refused when asked for again.
        return await self._caller.call(method, request, within=self._timeout, repeatable=False)


def _sendable(task_ids: Sequence[str]) -> list[str]:
    validation.batch_size("task_ids", task_ids)
    return [short_text(task_id) for task_id in task_ids]
