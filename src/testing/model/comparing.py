"""Whether what callers see is what the reference says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import attrs

from ...domain.errors import IdempotencyKeyReusedError
from ...domain.requests import NewTask
from ...domain.task import AttemptError, Status
from ...domain.views import Enqueued, LeasedTask, QueueView, TaskView
from .reference import Answers, Known
from .stage import word

_OF_WORKERS: Final = "ValueError"
"""The type of errors that workers report; the words of all others are free."""


def check_words(answers: object, allowed: Sequence[Answers]) -> None:
    """Check the answers to a batch, each against what may be said."""
    assert isinstance(answers, list)
    for answer, words in zip(answers, allowed, strict=True):
        assert word(answer) in words


def check_view(known: Known, seen: TaskView) -> None:
    """Check a task as callers see it, and learn how long a wait was drawn."""
    if known.drawn_before is not None:
        assert known.view.run_after <= seen.run_after < known.drawn_before
        known.change(run_after=seen.run_after)
        known.drawn_before = None
    assert _facts(seen.errors) == _facts(known.view.errors)
    assert seen == attrs.evolve(
        known.view, errors=seen.errors, last_error=seen.last_error, updated_at=seen.updated_at
    )


def _facts(errors: Iterable[AttemptError]) -> list[AttemptError]:
    return [
        error if error.type == _OF_WORKERS else attrs.evolve(error, message="") for error in errors
    ]


def check_key_taken(new: NewTask, holder: Known, answer: object) -> None:
    """Check the answer to an enqueue under a key that `holder` holds."""
    content = (holder.view.type, holder.view.payload)
    if (new.type, new.payload) == content or new.allow_different_payload:
        assert isinstance(answer, Enqueued)
        assert not answer.created
        assert answer.task.payload is None
        assert answer.task.result is None
        whole = attrs.evolve(answer.task, payload=holder.view.payload, result=holder.view.result)
        check_view(holder, whole)
    else:
        assert isinstance(answer, IdempotencyKeyReusedError)
        assert answer.task_id == holder.view.id


def check_lease(known: Known, leased: LeasedTask, now: datetime) -> None:
    """Check what a worker is given, once the reference has leased the task."""
    assert leased.task == attrs.evolve(
        known.view, errors=(), last_error=None, updated_at=leased.task.updated_at
    )
    assert leased.attempt == known.view.attempts + 1
    assert leased.lease_number == known.leases
    assert now + leased.lease_duration == known.view.lease_expires_at


def check_queue(shown: QueueView, tasks: Sequence[TaskView], now: datetime) -> None:
    """Check a queue as operators see it, but for whether it is paused."""
    waits = [
        now - task.run_after
        for task in tasks
        if task.status == Status.QUEUED and task.run_after <= now
    ]
    statuses = [task.status for task in tasks]
    assert shown.oldest_due == max(waits, default=None)
    assert all(depth.exact for depth in shown.depths.values())
    assert {status: depth.count for status, depth in shown.depths.items()} == {
        status: statuses.count(status) for status in statuses
    }
