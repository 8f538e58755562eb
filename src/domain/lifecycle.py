"""
How a task changes: one pure function for each arrow of the life cycle.

No function here reads a clock, draws a number or knows where tasks are kept. Each
takes a task and returns the task as it is afterwards; where nothing changes it
returns the very task it was given. A refusal is an exception.

Every interval is half-open: a lease covers [granted, expires_at), a task is due
from `run_after` on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, assert_never

import attrs

from .error_text import clean_error
from .errors import (
    LeaseLostError,
    LostReason,
    TaskFinishedError,
    TaskNotDeadError,
    TaskNotFinishedError,
)
from .ids import JsonText, LeaseToken
from .lease import Lease
from .limits import FREE_RELEASES, MAX_ERRORS_KEPT
from .task import (
    TERMINAL,
    AttemptError,
    Cancelled,
    Dead,
    Failed,
    Leased,
    Queued,
    Settled,
    State,
    Succeeded,
    Task,
    TaskError,
    Verb,
    is_due,
)


def lease(task: Task, *, grant: Lease, now: datetime) -> Task:
    """
    Give a due task to the holder of `grant`.

    Storages do the same in one atomic statement; this is what they must do.

    Raises:
        ValueError: the task is not due at `now`.
    """
    if not is_due(task, now):
        raise ValueError(f"task {task.id} is not due at {now}")
    return _changed(task, now=now, state=Leased(lease=grant), lease_number=task.lease_number + 1)


def heartbeat(task: Task, *, token: LeaseToken, duration: timedelta, now: datetime) -> Task:
    """
    Make the lease last until `now + duration`; it never becomes shorter.

    Raises:
        LeaseLostError: the lease expired (even if nobody took the task), or is not current.
    """
    held = _live_lease(task, token=token, now=now)
    extended = held.lease.extended(duration, now=now)
    if extended == held.lease:
        return task
    return _changed(task, now=now, state=attrs.evolve(held, lease=extended))


def complete(task: Task, *, token: LeaseToken, result: JsonText | None, now: datetime) -> Task:
    """
    End the attempt well. A cancel that came meanwhile is too late.

    Raises:
        LeaseLostError: the lease expired or is not current, or was ended in another way.
    """
    if _repeats(task, token, Verb.COMPLETE):
        return task
    _live_lease(task, token=token, now=now)
    return _changed(
        task,
        now=now,
        state=Succeeded(at=now, result=result),
        attempts=task.attempts + 1,
        settled=Settled(token=token, verb=Verb.COMPLETE),
    )


def fail(
    task: Task,
    *,
    token: LeaseToken,
    error: TaskError,
    retry: bool = True,
    retry_after: timedelta | None = None,
    jitter: float,
    now: datetime,
) -> Task:
    """
    Record a failed attempt: queued again after a wait, or given up.

    Args:
        error: what the worker reports; it is cleaned and cut.
        retry: False gives the task up as `failed`, whatever attempts are left.
        retry_after: overrides the policy's wait, this once.
        jitter: a draw from [0, 1).

    Raises:
        LeaseLostError: as for `complete`.
    """
    if _repeats(task, token, Verb.FAIL):
        return task
    held = _live_lease(task, token=token, now=now)
    recorded = _attempt_error(task, held, error, now=now)
    settled = attrs.evolve(task, settled=Settled(token=token, verb=Verb.FAIL))
    if not retry and held.cancel_requested_at is None:
        return _given_up(settled, state=Failed(at=now), error=recorded, now=now)
    return _failed_attempt(settled, held, recorded, wait=retry_after, jitter=jitter, now=now)


def release(
    task: Task, *, token: LeaseToken, jitter: float, now: datetime, undelivered: bool = False
) -> Task:
    """
    Give the task back uncounted, with its place in the line.

    From the 11th release of a cycle on, a release counts as a failed attempt, so
    that no task bounces for ever.

    Args:
        undelivered: the task never reached who was to run it, so this is no bounce of its.
        jitter: a draw from [0, 1).

    Raises:
        LeaseLostError: as for `complete`.
    """
    if _repeats(task, token, Verb.RELEASE):
        return task
    held = _live_lease(task, token=token, now=now)
    settled = attrs.evolve(task, settled=Settled(token=token, verb=Verb.RELEASE))
    if undelivered:
        return _changed(settled, now=now, state=_back_in_line(held, now=now))
    settled = attrs.evolve(settled, releases=task.releases + 1)
    if settled.releases > FREE_RELEASES:
        message = f"released {settled.releases} times without an end"
        reported = TaskError(type="ReleasedTooOften", message=message)
        error = _attempt_error(task, held, reported, now=now)
        return _failed_attempt(settled, held, error, jitter=jitter, now=now)
    return _changed(settled, now=now, state=_back_in_line(held, now=now))


def expire(task: Task, *, jitter: float, now: datetime) -> Task:
    """
    End a lease whose time is over, by the same rule as a failed attempt.

    A task without a lease, or whose lease still lives, is returned as it is.
    """
    if not isinstance(task.state, Leased) or not task.state.lease.expired(now):
        return task
    message = f"worker {task.state.lease.holder} neither finished the task nor renewed its lease"
    reported = TaskError(type="LeaseExpired", message=message)
    error = _attempt_error(task, task.state, reported, now=now)
    return _failed_attempt(task, task.state, error, jitter=jitter, now=now)


def undo_lease(task: Task, *, token: LeaseToken, now: datetime) -> Task:
    """
    Take back a lease that never reached its worker; it counts as nothing.

    A task that is no longer under that lease is returned as it is.
    """
    if not isinstance(task.state, Leased) or task.state.lease.token != token:
        return task
    return _changed(task, now=now, state=_back_in_line(task.state, now=now))


def cancel(task: Task, *, now: datetime) -> Task:
    """
    Call a task off: a queued one at once, a leased one by a word to its worker.

    Raises:
        TaskFinishedError: it has ended in another way.
    """
    match task.state:
        case Queued():
            return _changed(task, now=now, state=Cancelled(at=now))
        case Leased(cancel_requested_at=None):
            return _changed(task, now=now, state=attrs.evolve(task.state, cancel_requested_at=now))
        case Leased() | Cancelled():
            return task
        case Succeeded() | Failed() | Dead():
            raise TaskFinishedError(task.id, task.status)
        case _:
            assert_never(task.state)


def requeue(task: Task, *, now: datetime) -> Task:
    """
    Start a new cycle of a task that was given up: all its attempts, due now.

    The error history stays and the lease number goes on.

    Raises:
        TaskNotDeadError: it is neither failed, dead nor cancelled.
    """
    if not isinstance(task.state, Failed | Dead | Cancelled):
        raise TaskNotDeadError(task.id, task.status)
    return _changed(task, now=now, state=Queued(), run_after=now, attempts=0, releases=0)


def require_finished(task: Task) -> None:
    """
    Check that a task may be deleted.

    Raises:
        TaskNotFinishedError: it is queued or leased.
    """
    if task.status not in TERMINAL:
        raise TaskNotFinishedError(task.id, task.status)


def _live_lease(task: Task, *, token: LeaseToken, now: datetime) -> Leased:
    match task.state:
        case Leased(lease=held) if held.token == token and not held.expired(now):
            return task.state
        case _:
            raise LeaseLostError(task.id, _why_lost(task, token))


def _why_lost(task: Task, token: LeaseToken) -> LostReason:
    was_settled = task.settled is not None and task.settled.token == token
    match task.state:
        case Leased(lease=held) if held.token == token:
            return LostReason.LEASE_EXPIRED
        case Leased():
            return LostReason.LEASE_SUPERSEDED
        case Queued():
            return LostReason.LEASE_SUPERSEDED if was_settled else LostReason.LEASE_EXPIRED
        case Cancelled() if not was_settled:
            return LostReason.TASK_CANCELLED
        case Succeeded() | Failed() | Dead() | Cancelled():
            return LostReason.TASK_FINISHED
        case _:
            assert_never(task.state)


def _repeats(task: Task, token: LeaseToken, verb: Verb) -> bool:
    return task.settled == Settled(token=token, verb=verb)


def _back_in_line(held: Leased, *, now: datetime) -> State:
    return Queued() if held.cancel_requested_at is None else Cancelled(at=now)


def _failed_attempt(
    task: Task,
    held: Leased,
    error: AttemptError,
    *,
    wait: timedelta | None = None,
    jitter: float,
    now: datetime,
) -> Task:
    if held.cancel_requested_at is not None:
        return _given_up(task, state=Cancelled(at=now), error=error, now=now)
    attempts = task.attempts + 1
    if attempts >= task.max_attempts:
        return _given_up(task, state=Dead(at=now), error=error, now=now)
    if wait is None:
        wait = task.retry.delay(attempts, jitter=jitter)
    return _changed(
        task,
        now=now,
        state=Queued(),
        attempts=attempts,
        run_after=now + wait,
        errors=_with_newest(task, error),
    )


def _given_up(
    task: Task, *, state: Failed | Dead | Cancelled, error: AttemptError, now: datetime
) -> Task:
    return _changed(
        task,
        now=now,
        state=state,
        attempts=task.attempts + 1,
        errors=_with_newest(task, error),
    )


def _with_newest(task: Task, error: AttemptError) -> tuple[AttemptError, ...]:
    return (*task.errors, error)[-MAX_ERRORS_KEPT:]


def _attempt_error(task: Task, held: Leased, error: TaskError, *, now: datetime) -> AttemptError:
    type_, message, traceback = clean_error(error.type, error.message, error.traceback)
    return AttemptError(
        attempt=task.attempts + 1,
        worker_id=held.lease.holder,
        at=now,
        type=type_,
        message=message,
        traceback=traceback,
    )


def _changed(task: Task, *, now: datetime, **fields: Any) -> Task:
    return attrs.evolve(task, version=task.version + 1, updated_at=now, **fields)
