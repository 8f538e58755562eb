"""
What operators ask for and are told, between messages and values.

Written like `request_codec` and `reply_codec`.
"""

from __future__ import annotations

import attrs

from ...domain.errors import TaskQueueError
from ...domain.ids import QueueName
from ...domain.requests import PageRequest, TaskFilter
from ...domain.task import Status
from ...domain.views import Depth, QueueView, TaskPage
from .generated import admin_pb2 as pb
from .refusals import read_refusal, write_refusal
from .reply_codec import read_task, write_task
from .scalars import (
    int32,
    read_asked_status,
    read_span,
    read_told_status,
    require_text,
    short_text,
    write_span,
    write_status,
)


def write_task_list(wanted: TaskFilter, page: PageRequest) -> pb.ListTasksRequest:
    """
    Return which tasks an operator wants to see.

    Raises:
        InvalidArgumentError: the key cannot be spelt in UTF-8.
    """
    require_text(idempotency_key=wanted.idempotency_key)
    return pb.ListTasksRequest(
        queue=short_text(wanted.queue),
        type=short_text(wanted.type),
        statuses=[write_status(status) for status in wanted.statuses],
        idempotency_key=wanted.idempotency_key,
        page_size=int32(page.size),
        cursor=short_text(page.cursor),
        with_payload=page.with_payload,
    )


def read_task_filter(message: pb.ListTasksRequest) -> TaskFilter:
    """
    Return which tasks an operator wants to see.

    Raises:
        InvalidArgumentError: a status is none of a task.
    """
    return TaskFilter(
        queue=message.queue,
        type=message.type,
        statuses=tuple(
            read_asked_status(f"statuses[{index}]", number)
            for index, number in enumerate(message.statuses)
        ),
        idempotency_key=message.idempotency_key,
    )


def read_page_request(message: pb.ListTasksRequest) -> PageRequest:
    """Return how much of the list an operator wants to see."""
    page = PageRequest(cursor=message.cursor, with_payload=message.with_payload)
    if not message.HasField("page_size"):
        return page
    return attrs.evolve(page, size=message.page_size)


def write_page(page: TaskPage) -> pb.ListTasksResponse:
    """Return `page` as a message."""
    return pb.ListTasksResponse(
        tasks=[write_task(task) for task in page.tasks], next_cursor=page.next_cursor
    )


def read_page(message: pb.ListTasksResponse) -> TaskPage:
    """Return one page of a list."""
    return TaskPage(
        tasks=tuple(read_task(task) for task in message.tasks), next_cursor=message.next_cursor
    )


def write_task_result(outcome: TaskQueueError | None) -> pb.TaskResult:
    """Return what became of the change of one task."""
    return pb.TaskResult(refused=None if outcome is None else write_refusal(outcome))


def read_task_result(message: pb.TaskResult) -> TaskQueueError | None:
    """Return what became of the change of one task; None: it is done."""
    return read_refusal(message.refused) if message.HasField("refused") else None


def write_queue(queue: QueueView) -> pb.Queue:
    """Return `queue` as a message."""
    return pb.Queue(
        name=queue.name,
        paused=queue.paused,
        depths=[
            pb.QueueDepth(status=write_status(status), count=depth.count, at_least=not depth.exact)
            for status, depth in queue.depths.items()
        ],
        oldest_due=None if queue.oldest_due is None else write_span(queue.oldest_due),
    )


def read_queue(message: pb.Queue) -> QueueView:
    """Return the queue that `message` shows."""
    return QueueView(
        name=QueueName(message.name),
        paused=message.paused,
        depths=dict(_read_depth(depth) for depth in message.depths),
        oldest_due=read_span(message.oldest_due) if message.HasField("oldest_due") else None,
    )


def _read_depth(message: pb.QueueDepth) -> tuple[Status, Depth]:
    depth = Depth(count=message.count, exact=not message.at_least)
    return read_told_status(message.status), depth
