"""Tasks as this process last saw them, so that the common change needs no load."""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

import attrs

from .ids import TaskId
from .task import Task

CAPACITY: Final = 20_000
MAX_ERROR_CHARACTERS: Final = 2_000
"""Of a task's history; a task with more is not kept, so that memory stays bounded."""


class Snapshots:
    """
    The tasks seen last, without payloads; the oldest give way.

    What is kept may be out of date. A change that it accepts is still compared by
    version where it is stored; a refusal by it means nothing.
    """

    def __init__(self, capacity: int = CAPACITY) -> None:
        self._capacity = capacity
        self._tasks: OrderedDict[TaskId, Task] = OrderedDict()

    def keep(self, task: Task) -> None:
        """Keep `task` as it was seen just now."""
        self.forget(task.id)
        history = sum(len(error.message) + len(error.traceback) for error in task.errors)
        if history > MAX_ERROR_CHARACTERS:
            return
        self._tasks[task.id] = attrs.evolve(task, payload=None)
        if len(self._tasks) > self._capacity:
            self._tasks.popitem(last=False)

    def recall(self, task_id: TaskId) -> Task | None:
        """Return the task as it was seen last, or None."""
        return self._tasks.get(task_id)

    def forget(self, task_id: TaskId) -> None:
        """Keep nothing of a task."""
        self._tasks.pop(task_id, None)
