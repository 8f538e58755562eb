"""The methods of the service TaskAdmin, carried out by the `TaskAdmin` of this process."""

from __future__ import annotations

import attrs

from ...domain.ports import TaskAdmin
from . import methods
from .admin_codec import (
    read_page_request,
    read_task_filter,
    write_page,
    write_queue,
    write_task_result,
)
from .calls import Calls, Handler
from .generated import admin_pb2 as pb


@attrs.frozen(kw_only=True)
class AdminCalls:
    """Answers operators."""

    _admin: TaskAdmin

    def handlers(self, calls: Calls) -> dict[str, Handler]:
        """Return how each method is handled, by name."""
        replying = calls.replying
        return {
            methods.LIST_TASKS.name: replying(methods.LIST_TASKS, self._list_tasks),
            methods.REQUEUE_TASKS.name: replying(methods.REQUEUE_TASKS, self._requeue_tasks),
            methods.CANCEL_TASKS.name: replying(methods.CANCEL_TASKS, self._cancel_tasks),
            methods.DELETE_TASKS.name: replying(methods.DELETE_TASKS, self._delete_tasks),
            methods.LIST_QUEUES.name: replying(methods.LIST_QUEUES, self._list_queues),
            methods.PAUSE_QUEUE.name: replying(methods.PAUSE_QUEUE, self._pause_queue),
            methods.RESUME_QUEUE.name: replying(methods.RESUME_QUEUE, self._resume_queue),
        }

    async def _list_tasks(self, request: pb.ListTasksRequest) -> pb.ListTasksResponse:
        wanted, page = read_task_filter(request), read_page_request(request)
        return write_page(await self._admin.list_tasks(wanted, page))

    async def _requeue_tasks(self, request: pb.RequeueTasksRequest) -> pb.RequeueTasksResponse:
        outcomes = await self._admin.requeue(request.task_ids)
        return pb.RequeueTasksResponse(results=[write_task_result(each) for each in outcomes])

    async def _cancel_tasks(self, request: pb.CancelTasksRequest) -> pb.CancelTasksResponse:
        outcomes = await self._admin.cancel(request.task_ids)
        return pb.CancelTasksResponse(results=[write_task_result(each) for each in outcomes])

    async def _delete_tasks(self, request: pb.DeleteTasksRequest) -> pb.DeleteTasksResponse:
        outcomes = await self._admin.delete(request.task_ids)
        return pb.DeleteTasksResponse(results=[write_task_result(each) for each in outcomes])

    async def _list_queues(self, _: pb.ListQueuesRequest) -> pb.ListQueuesResponse:
        queues = await self._admin.list_queues()
        return pb.ListQueuesResponse(queues=[write_queue(queue) for queue in queues])

    async def _pause_queue(self, request: pb.PauseQueueRequest) -> pb.PauseQueueResponse:
        await self._admin.pause_queue(request.queue)
        return pb.PauseQueueResponse()

    async def _resume_queue(self, request: pb.ResumeQueueRequest) -> pb.ResumeQueueResponse:
        await self._admin.resume_queue(request.queue)
        return pb.ResumeQueueResponse()
