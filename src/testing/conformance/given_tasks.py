"""Tasks in each status, made through the queue."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs
import pytest

from ...domain.ports import TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail
from ...domain.task import TaskError
from ...domain.views import TaskView
from .queue_fixtures import (
    QUICK,
    enqueue_one,
    lease_one,
    ref,
    settle,
)


async def queued(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that waits."""
    return await enqueue_one(queue)


async def leased(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that a worker holds."""
    await enqueue_one(queue)
    return (await lease_one(queue)).task


async def succeeded(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that was completed."""
    await enqueue_one(queue)
    held = await lease_one(queue)
    await settle(queue, Complete(ref=ref(held), result='{"n": 1}'))
    return await queue.get(held.task.id)


async def failed(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task that was given up by its worker."""
    await enqueue_one(queue)
    held = await lease_one(queue)
    await settle(queue, Fail(ref=ref(held), error=TaskError(type="E"), retry=False))
    return await queue.get(held.task.id)


async def dead(queue: TaskQueue, admin: TaskAdmin) -> TaskView:  # noqa: ARG001  as the others
    """Make a task whose attempts are used up."""
    await enqueue_one(queue, attrs.evolve(QUICK, max_attempts=1))
    held = await lease_one(queue)
    await settle(queue, Fail(ref=ref(held), error=TaskError(type="E")))
    return await queue.get(held.task.id)


async def cancelled(queue: TaskQueue, admin: TaskAdmin) -> TaskView:
    """Make a task that was called off."""
    task = await enqueue_one(queue)
    assert await admin.cancel([task.id]) == [None]
    return await queue.get(task.id)


Make = Callable[[TaskQueue, TaskAdmin], Awaitable[TaskView]]


def made(*makes: Make) -> pytest.MarkDecorator:
    """Run a test with a task made in each of these ways."""
    return pytest.mark.parametrize("make", makes, ids=lambda make: make.__name__)
