"""What holds whatever happens, told from what callers see alone."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import attrs

from ...domain.ids import TaskId
from ...domain.task import TERMINAL, Status
from ...domain.views import LeasedTask, TaskView

_NO_TIME: Final = timedelta(0)


@attrs.define
class Promises:
    """Remembers what was seen and handed out, and checks what comes against it."""

    seen: dict[TaskId, TaskView] = attrs.field(factory=dict)
    stored: int = 0
    """Tasks that were stored in all."""

    removed: int = 0
    """Tasks that were deleted or pruned."""

    requeued: bool = False
    """Whether an operator has asked for a requeue since the last look."""

    reaped: bool = False
    """Whether leases were reaped since the last look."""

    _started: set[tuple[TaskId, int]] = attrs.field(factory=set)
    _tokens: set[str] = attrs.field(factory=set)

    def leased(self, leased: LeasedTask, now: datetime) -> None:
        """Check that nobody else holds, or ever held, what a worker was given."""
        before = self.seen[leased.task.id]
        start = (leased.task.id, leased.lease_number)
        assert before.lease_expires_at is None or before.lease_expires_at <= now
        assert leased.lease_duration > _NO_TIME
        assert start not in self._started, "the handler of one lease starts once"
        assert leased.lease_token not in self._tokens
        self._started.add(start)
        self._tokens.add(leased.lease_token)
        self.seen[leased.task.id] = leased.task

    def look(self, tasks: tuple[TaskView, ...], now: datetime) -> None:
        """Check all tasks as they are."""
        assert len({task.id for task in tasks}) == len(tasks)
        assert self.stored == len(tasks) + self.removed, "a task was lost, or is there twice"
        for task in tasks:
            _check(task, now)
            before = self.seen.get(task.id)
            if before is not None and before.status in TERMINAL and before != task:
                assert self.requeued, "what has ended changes by a requeue alone"
            if self.reaped:
                assert task.lease_expires_at is None or task.lease_expires_at > now
        self.seen = {task.id: task for task in tasks}
        self.requeued = self.reaped = False


def _check(task: TaskView, now: datetime) -> None:
    assert task.attempts <= task.max_attempts
    assert task.status != Status.DEAD or task.attempts == task.max_attempts
    assert task.status not in {Status.QUEUED, Status.LEASED} or task.attempts < task.max_attempts
    assert (task.status == Status.LEASED) == (task.lease_owner is not None)
    assert (task.status == Status.LEASED) == (task.lease_expires_at is not None)
    assert (task.status in TERMINAL) == (task.finished_at is not None)
    assert task.last_error == (str(task.errors[-1]) if task.errors else None)
    assert task.created_at <= task.updated_at <= now
