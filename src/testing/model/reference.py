"""
The life of a task once more, as the pages for users tell it, in the plainest code there is.

Nothing here leans on the code that it judges: it shares the values with which callers ask
and are answered, and no rule.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

import attrs

from ...domain.ids import JsonText, LeaseToken, QueueName, TaskId, WorkerId
from ...domain.requests import Complete, Fail, LeaseRef, LeaseRequest, NewTask, Release, Settlement
from ...domain.task import AttemptError, Status
from ...domain.views import LeasedTask, TaskView

Answers = frozenset[str]
"""What a caller may be told. More than one where the pages leave it open."""

OK: Final = frozenset({"ok"})
NOT_FOUND: Final = frozenset({"TaskNotFoundError"})
NOT_DEAD: Final = frozenset({"TaskNotDeadError"})
FINISHED: Final = frozenset({"TaskFinishedError"})
NOT_FINISHED: Final = frozenset({"TaskNotFinishedError"})

_EXPIRED: Final = "LEASE_EXPIRED"
_SUPERSEDED: Final = "LEASE_SUPERSEDED"
_FREE_RELEASES: Final = 10
_ERRORS_KEPT: Final = 10
_ENDED: Final = {Status.SUCCEEDED, Status.FAILED, Status.DEAD, Status.CANCELLED}
_RETENTION: Final = {
    Status.SUCCEEDED: timedelta(days=3),
    Status.CANCELLED: timedelta(days=3),
    Status.FAILED: timedelta(days=30),
    Status.DEAD: timedelta(days=30),
}


@attrs.define(kw_only=True)
class Known:
    """What there is to know about one task."""

    view: TaskView
    base: timedelta
    cap: timedelta
    releases: int = 0
    leases: int = 0
    token: LeaseToken | None = None
    cancel_asked: bool = False
    last_word: tuple[str, type[Settlement]] | None = None
    """Token and verb of the last lease that a worker ended."""

    reaped: str | None = None
    """Token of the last lease, if it was reaped."""

    drawn_before: datetime | None = None
    """Where a wait was drawn: it ends earlier than this, and not before `run_after`."""

    def change(self, **fields: Any) -> None:
        """Change what callers see."""
        self.view = attrs.evolve(self.view, **fields)

    def live(self, token: str, now: datetime) -> bool:
        """Whether the lease is current, and its time is not over."""
        ends = self.view.lease_expires_at
        return self.token == token and ends is not None and now < ends

    def why_lost(self, token: str) -> Answers:
        """Return why the lease is not its caller's any more."""
        spoke = self.last_word is not None and self.last_word[0] == token
        match self.view.status:
            case Status.LEASED:
                return frozenset({_EXPIRED if self.token == token else _SUPERSEDED})
            case Status.QUEUED if spoke:
                return frozenset({_SUPERSEDED})
            case Status.QUEUED if self.reaped == token:
                return frozenset({_EXPIRED})
            case Status.QUEUED:
                return frozenset({_EXPIRED, _SUPERSEDED})
            case Status.CANCELLED:
                return frozenset({"TASK_FINISHED" if spoke else "TASK_CANCELLED"})
            case _:
                return frozenset({"TASK_FINISHED"})

    def end_lease(self, status: Status, now: datetime, *, counted: bool) -> None:
        """End the current lease, and begin what follows."""
        self.token = None
        self.cancel_asked = False
        self.change(
            status=status,
            attempts=self.view.attempts + counted,
            lease_owner=None,
            lease_expires_at=None,
            finished_at=now if status in _ENDED else None,
        )

    def go_back(self, now: datetime) -> None:
        """End the current lease uncounted; the task keeps its place in the line."""
        self.end_lease(Status.CANCELLED if self.cancel_asked else Status.QUEUED, now, counted=False)

    def go_wrong(
        self, now: datetime, *, error: AttemptError, retry: bool = True, wait: timedelta | None
    ) -> None:
        """End the current lease as a failed attempt."""
        self.change(errors=(*self.view.errors, error)[-_ERRORS_KEPT:])
        attempts = self.view.attempts + 1
        if self.cancel_asked:
            self.end_lease(Status.CANCELLED, now, counted=True)
        elif not retry:
            self.end_lease(Status.FAILED, now, counted=True)
        elif attempts >= self.view.max_attempts:
            self.end_lease(Status.DEAD, now, counted=True)
        else:
            self.end_lease(Status.QUEUED, now, counted=True)
            shortest = min(self.cap, self.base * 2**attempts) if wait is None else wait
            self.drawn_before = now + shortest * 3 / 2 if wait is None else None
            self.change(run_after=now + shortest)

    def error(self, now: datetime, type_: str, message: str = "") -> AttemptError:
        """Return the error of the attempt that runs."""
        return AttemptError(
            attempt=self.view.attempts + 1,
            worker_id=self.view.lease_owner or WorkerId(""),
            at=now,
            type=type_,
            message=message,
        )


class Reference:
    """Every task that there should be, and how each verb changes them."""

    def __init__(self) -> None:
        self.tasks: dict[TaskId, Known] = {}
        self.paused: set[str] = set()

    # --- producers

    def holder(self, new: NewTask) -> Known | None:
        """Return the task that holds the key of `new` already."""
        held = (task for task in self.tasks.values() if new.idempotency_key)
        return next(
            (
                task
                for task in held
                if (task.view.queue, task.view.idempotency_key) == (new.queue, new.idempotency_key)
            ),
            None,
        )

    def enqueue(self, new: NewTask, seen: TaskView, now: datetime) -> None:
        """Store a task whose id and name for `type` stand in `seen`."""
        due = now + new.delay if new.delay is not None else new.run_after or now
        view = TaskView(
            id=seen.id,
            queue=QueueName(new.queue),
            type=seen.type,
            payload=JsonText(new.payload),
            status=Status.QUEUED,
            priority=new.priority,
            attempts=0,
            max_attempts=10 if new.max_attempts is None else new.max_attempts,
            run_after=max(due, now),
            created_at=now,
            updated_at=now,
            finished_at=None,
            lease_owner=None,
            lease_expires_at=None,
            idempotency_key=seen.idempotency_key,
            last_error=None,
            errors=(),
            result=None,
        )
        self.tasks[seen.id] = Known(
            view=view,
            base=new.retry_base or timedelta(seconds=2),
            cap=new.retry_cap or timedelta(hours=1),
        )

    # --- workers

    def choices(self, request: LeaseRequest, now: datetime) -> list[list[TaskId]]:
        """Return what a Lease may give: the queues in the order given, or from any one on."""
        turns = deque(request.queues)
        orders = [list(turns)]
        for _ in () if request.strict_order else request.queues[1:]:
            turns.rotate(-1)
            orders.append(list(turns))
        return [
            [task for queue in order for task in self._line(queue, request.types, now)][
                : request.max_tasks
            ]
            for order in orders
        ]

    def _line(self, queue: str, types: tuple[str, ...], now: datetime) -> list[TaskId]:
        if queue in self.paused:
            return []
        due = [
            task.view
            for task in self.tasks.values()
            if task.view.queue == queue
            and task.view.status == Status.QUEUED
            and task.view.run_after <= now
            and (not types or task.view.type in types)
        ]
        return [task.id for task in sorted(due, key=lambda t: (-t.priority, t.run_after, t.id))]

    def lease(self, leased: LeasedTask, request: LeaseRequest, now: datetime) -> None:
        """Lease one task under the token that was made for it."""
        task = self.tasks[leased.task.id]
        task.token = leased.lease_token
        task.reaped = None
        task.leases += 1
        task.change(
            status=Status.LEASED,
            lease_owner=WorkerId(request.worker_id),
            lease_expires_at=now + (request.lease_duration or timedelta(seconds=30)),
        )

    def heartbeat(self, ref: LeaseRef, duration: timedelta, now: datetime) -> Answers:
        """Extend one lease."""
        task = self.tasks.get(TaskId(ref.task_id))
        if task is None:
            return NOT_FOUND
        ends = task.view.lease_expires_at
        if ends is None or not task.live(ref.lease_token, now):
            return task.why_lost(ref.lease_token)
        task.change(lease_expires_at=max(ends, now + duration))
        return OK

    def settle(self, settlement: Settlement, now: datetime) -> Answers:
        """End one attempt by a worker's word."""
        token = settlement.ref.lease_token
        task = self.tasks.get(TaskId(settlement.ref.task_id))
        if task is None:
            return NOT_FOUND
        if task.last_word == (token, type(settlement)):
            return OK
        if not task.live(token, now):
            return task.why_lost(token)
        task.last_word = (token, type(settlement))
        match settlement:
            case Complete(result=result):
                task.end_lease(Status.SUCCEEDED, now, counted=True)
                task.change(result=JsonText(result) if result else None)
            case Fail(error=error, retry=retry, retry_after=wait):
                reported = task.error(now, error.type, error.message)
                task.go_wrong(now, error=reported, retry=retry, wait=wait)
            case Release():
                task.releases += 1
                if task.releases > _FREE_RELEASES:
                    task.go_wrong(now, error=task.error(now, "ReleasedTooOften"), wait=None)
                else:
                    task.go_back(now)
        return OK

    def undo(self, ref: LeaseRef, now: datetime) -> None:
        """Take back one lease that never reached its worker."""
        task = self.tasks.get(TaskId(ref.task_id))
        if task is not None and task.token == ref.lease_token:
            task.go_back(now)

    # --- operators

    def cancel(self, task_id: TaskId, now: datetime) -> Answers:
        """Call one task off."""
        task = self.tasks.get(task_id)
        if task is None:
            return NOT_FOUND
        if task.view.status == Status.LEASED:
            task.cancel_asked = True
        elif task.view.status == Status.QUEUED:
            task.change(status=Status.CANCELLED, finished_at=now)
        elif task.view.status != Status.CANCELLED:
            return FINISHED
        return OK

    def requeue(self, task_id: TaskId, now: datetime) -> Answers:
        """Start one task anew."""
        task = self.tasks.get(task_id)
        if task is None:
            return NOT_FOUND
        if task.view.status not in {Status.FAILED, Status.DEAD, Status.CANCELLED}:
            return NOT_DEAD
        task.releases = 0
        task.drawn_before = None
        task.change(status=Status.QUEUED, attempts=0, run_after=now, finished_at=None)
        return OK

    def delete(self, task_id: TaskId, _: datetime) -> Answers:
        """Remove one task."""
        task = self.tasks.get(task_id)
        if task is None:
            return NOT_FOUND
        if task.view.status not in _ENDED:
            return NOT_FINISHED
        del self.tasks[task_id]
        return OK

    # --- maintenance

    def reap(self, now: datetime) -> int:
        """End leases whose time is over."""
        over = [task for task in self._leased() if not task.live(task.token or "", now)]
        for task in over:
            task.reaped = task.token
            task.go_wrong(now, error=task.error(now, "LeaseExpired"), wait=None)
        return len(over)

    def prune(self, now: datetime) -> int:
        """Delete tasks that ended longer ago than they are kept."""
        old = [task.view.id for task in self.tasks.values() if _kept_until(task, now) < now]
        for task_id in old:
            del self.tasks[task_id]
        return len(old)

    # --- what a course of events is steered by

    def current(self) -> list[LeaseRef]:
        """Return the leases that are current, reaped or not."""
        return [
            LeaseRef(task_id=task.view.id, lease_token=task.token or "") for task in self._leased()
        ]

    def moments(self, now: datetime) -> list[datetime]:
        """Return when something will begin or end, soonest first."""
        moments = {
            moment
            for task in self.tasks.values()
            for moment in (
                task.view.run_after,
                task.view.lease_expires_at or now,
                _kept_until(task, now),
            )
        }
        return sorted(moment for moment in moments if moment > now)

    def _leased(self) -> Iterator[Known]:
        return (task for task in self.tasks.values() if task.view.status == Status.LEASED)


def _kept_until(task: Known, now: datetime) -> datetime:
    ended_at = task.view.finished_at
    return now if ended_at is None else ended_at + _RETENTION[task.view.status]
