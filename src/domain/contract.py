"""
What every storage must do, as pure functions of tasks.

A storage that holds its tasks as values shares them; one with a language of its own says
the same in that language, and is held to it by the conformance suite.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from datetime import datetime

import attrs

from . import lifecycle
from .ids import QueueName, TaskId, TaskType
from .limits import COUNTED_EXACTLY
from .storing import Added, Change, Demand, PruneRule, QueueDepths, Selection
from .task import (
    AttemptError,
    Dead,
    Leased,
    Queued,
    Status,
    Succeeded,
    Task,
    is_due,
    leasing_order,
)
from .views import Depth


def repeated(known: Task, task: Task) -> Added | Task:
    """
    Return what `add` answers where `known`, which stands there, has the id of `task`.

    A repeat of the task is stored already; what has other content holds the id as its own.
    """
    same = (known.queue, known.fingerprint) == (task.queue, task.fingerprint)
    return Added.STORED if same else without_payload(known)


def due_in_order(tasks: Iterable[Task], demand: Demand, *, now: datetime) -> list[Task]:
    """Return those of `tasks` that `demand` may be given at `now`, first to lease first."""
    due = (
        task
        for task in tasks
        if task.queue == demand.queue and is_due(task, now) and _is_of(task, demand.types)
    )
    return sorted(due, key=leasing_order)


def lease_first(in_order: Iterable[Task], demand: Demand, *, now: datetime) -> list[Task]:
    """
    Return the first of `in_order` as they are once leased, for a claim to store and answer.

    As many as there are grants, up to `max_bytes` of payload, but the first whatever its
    size. One that does not fit ends the claim: none behind it is taken before it.

    Args:
        in_order: tasks that are due, first to lease first; read no further than needed.
    """
    leased: list[Task] = []
    room = demand.max_bytes
    # The grants come first: zip must not read a task for which there is none.
    for grant, task in zip(demand.grants, in_order, strict=False):
        if leased and task.payload_bytes > room:
            break
        room -= task.payload_bytes
        leased.append(lifecycle.lease(task, grant=grant, now=now))
    return leased


def next_due(
    tasks: Iterable[Task],
    queues: Collection[QueueName],
    types: Collection[TaskType],
    *,
    now: datetime,
) -> datetime | None:
    """Return the earliest `run_after` later than `now` of queued tasks of these queues."""
    later = (
        task.run_after
        for task in tasks
        if isinstance(task.state, Queued)
        and task.run_after > now
        and task.queue in queues
        and _is_of(task, types)
    )
    return min(later, default=None)


def replacement(stored: Task | None, change: Change) -> Task | None:
    """
    Return what to store where `stored` stands, or None: the change is stale.

    The payload is that of `stored`, whatever the change carries.
    """
    if stored is None or not still_stands(stored, change.old):
        return None
    return attrs.evolve(change.new, payload=stored.payload)


def still_stands(stored: Task | None, seen: Task) -> bool:
    """Return whether `stored` is `seen` unchanged: there is one, and its version is the same."""
    return stored is not None and stored.version == seen.version


def has_expired(task: Task, now: datetime) -> bool:
    """Return whether `task` is leased, and its lease has ended at `now`."""
    return isinstance(task.state, Leased) and task.state.lease.expired(now)


def quarantined(task: Task, error: AttemptError, *, now: datetime) -> Task:
    """Return `task` set aside as dead, with `error` as its history; as it is, if it has ended."""
    if not isinstance(task.state, Queued | Leased):
        return task
    return attrs.evolve(
        task, state=Dead(at=now), errors=(error,), version=task.version + 1, updated_at=now
    )


def fits(task: Task, selection: Selection) -> bool:
    """Return whether `task` is one of those that `selection` looks for."""
    return (
        selection.queue in {None, task.queue}
        and selection.type in {None, task.type}
        and (not selection.statuses or task.status in selection.statuses)
        and selection.idempotency_key in {None, task.idempotency_key}
        and (selection.before is None or task.id < selection.before)
    )


def newest_first(tasks: Iterable[Task], selection: Selection, *, limit: int) -> list[Task]:
    """Return up to `limit` of the tasks that fit, the greatest id first."""
    return heapq.nlargest(limit, (task for task in tasks if fits(task, selection)), key=_id)


def may_be_pruned(task: Task, rules: Iterable[PruneRule]) -> bool:
    """Return whether a rule covers `task`. None covers one that has not ended."""
    if isinstance(task.state, Queued | Leased):
        return False
    at = task.state.at
    return any(task.status is rule.status and at < rule.finished_before for rule in rules)


def depths(tasks: Iterable[Task], *, now: datetime) -> list[QueueDepths]:
    """Return how full each queue of `tasks` is, by name."""
    counts: defaultdict[QueueName, Counter[Status]] = defaultdict(Counter)
    due_since: dict[QueueName, datetime] = {}
    for task in tasks:
        counts[task.queue][task.status] += 1
        if is_due(task, now):
            since = due_since.get(task.queue, task.run_after)
            due_since[task.queue] = min(since, task.run_after)
    return [
        QueueDepths(
            queue=queue,
            depths={status: depth(count) for status, count in counts[queue].items()},
            oldest_due_since=due_since.get(queue),
        )
        for queue in sorted(counts)
    ]


def depth(count: int) -> Depth:
    """Return a count as it is told: exact up to 10,000, then "at least 10,000"."""
    return Depth(count=min(count, COUNTED_EXACTLY), exact=count <= COUNTED_EXACTLY)


def without_payload(task: Task) -> Task:
    """Return `task` as it is read without payload: neither payload nor result."""
    if isinstance(task.state, Succeeded):
        return attrs.evolve(task, payload=None, state=attrs.evolve(task.state, result=None))
    return attrs.evolve(task, payload=None)


def read(tasks: Iterable[Task], *, with_payload: bool) -> tuple[Task, ...]:
    """Return `tasks`, with payload and result only where they are asked for."""
    return tuple(tasks if with_payload else map(without_payload, tasks))


def _is_of(task: Task, types: Collection[TaskType]) -> bool:
    return not types or task.type in types


def _id(task: Task) -> TaskId:
    return task.id
