"""
Enqueues on the way to a server: each task under an id of its own, so that they can be repeated.

Why ids and not keys: docs/adr/0011.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Final

import attrs

from ...domain import validation
from ...domain.errors import NotSentError, StorageUnavailableError, TaskQueueError
from ...domain.limits import MAX_BATCH
from ...domain.ports import Ids
from ...domain.requests import NewTask
from ...domain.views import Enqueued
from . import methods
from .caller import Caller
from .generated import queue_pb2 as pb
from .options import SPLIT_BYTES
from .parts import send_in_parts
from .reply_codec import read_enqueue_result
from .request_codec import write_new_task

_WORTH_MERGING: Final = SPLIT_BYTES // MAX_BATCH
"""Characters of payload, so that what is merged fits into one request, or a few."""

Outcome = Enqueued | TaskQueueError


@attrs.frozen(kw_only=True)
class Sender:
    """Sends tasks that have ids, and again where no answer came."""

    _caller: Caller
    _timeout: timedelta

    async def send(self, tasks: Sequence[NewTask]) -> list[Outcome]:
        """Return the outcome of each task."""

        async def send(messages: Sequence[pb.EnqueueRequest]) -> list[Outcome]:
            reply = await self._caller.call(
                methods.ENQUEUE_BATCH,
                pb.EnqueueBatchRequest(tasks=messages),
                within=self._timeout,
                repeatable=True,
            )
            return [read_enqueue_result(result) for result in reply.results]

        return await send_in_parts(tasks, write_new_task, send)


@attrs.frozen(kw_only=True)
class Enqueues:
    """The `enqueue` of a `TaskQueue`."""

    _ids: Ids
    _send: Callable[[Sequence[NewTask]], Awaitable[list[Outcome]]]
    _send_merged: Callable[[NewTask], Awaitable[Outcome]]

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Outcome]:
        """
        Store tasks, single small ones together with those of other callers.

        Raises:
            NotSentError: none is stored.
            StorageUnavailableError: whether they are stored is unknown.
        """
        validation.batch_size("tasks", tasks)
        named = [
            task if task.task_id else attrs.evolve(task, task_id=self._ids.task_id())
            for task in tasks
        ]
        try:
            if len(named) == 1 and len(named[0].payload) <= _WORTH_MERGING:
                return [await self._send_merged(named[0])]
            return await self._send(named)
        except NotSentError as error:
            raise NotSentError(f"{error}; nothing was stored") from error
        except StorageUnavailableError as error:
            which = f"task {named[0].task_id} is" if len(named) == 1 else "the tasks are"
            raise StorageUnavailableError(f"{error}; whether {which} stored is unknown") from error
