"""Explores the lease protocol within bounds; docs/protocol.md says what that proves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import attrs
import pytest

from leaseq.adapters.memory import MemoryTaskRepository
from leaseq.domain import lifecycle
from leaseq.domain.changes import TaskChanger, Wish
from leaseq.domain.errors import LeaseLostError, LostReason, TaskQueueError
from leaseq.domain.ids import LeaseToken
from leaseq.domain.limits import FREE_RELEASES
from leaseq.domain.retry import RetryPolicy
from leaseq.domain.storing import Added, Change, Replaced
from leaseq.domain.task import Leased, Queued, Task
from leaseq.testing import a_task, a_task_id
from protocol.exploration import Explored, explore
from protocol.stepping import Kind
from protocol.steps import Rules
from protocol.world import Allowed, World

LONGEST_TRACE: Final = 15
"""Steps that somebody can follow with a finger."""

_SOON = timedelta(milliseconds=1)
_ONE = attrs.evolve(
    a_task(id=a_task_id(1), max_attempts=2), retry=RetryPolicy(base=_SOON, cap=_SOON)
)

BEATS = World(rows=(_ONE,), allowed=Allowed(ticks=3, beats=1))
WRONG_CLOCKS = World(rows=(_ONE,), allowed=Allowed(ticks=1, wrong_clocks=1))
LOST_ANSWERS = World(rows=(_ONE,), allowed=Allowed(hang_ups=1, settlements=("complete", "fail")))
LATE_CALLS = World(
    rows=(attrs.evolve(_ONE, releases=FREE_RELEASES - 1),),
    allowed=Allowed(beats=1, hang_ups=1, settlements=("release",)),
)
CRASHES = World(rows=(_ONE,), allowed=Allowed(ticks=1, crashes=1, deaths=1))
ATTEMPTS = World(rows=(_ONE,), allowed=Allowed(ticks=1, settlements=("complete", "fail")))
OPERATORS = World(
    rows=(_ONE,),
    allowed=Allowed(cancels=1, requeues=1, settlements=("complete", "fail")),
)
PRODUCERS = World(rows=(), allowed=Allowed(enqueues=2, crashes=1))


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("start", "at_least", "statuses"),
    [
        pytest.param(BEATS, 10_000, "leased queued succeeded", id="beats"),
        pytest.param(WRONG_CLOCKS, 2_000, "leased queued succeeded", id="wrong clocks"),
        pytest.param(LOST_ANSWERS, 1_000, "leased queued succeeded", id="lost answers"),
        pytest.param(LATE_CALLS, 1_000, "leased queued", id="late calls"),
        pytest.param(CRASHES, 1_000, "leased queued succeeded", id="crashes"),
        pytest.param(ATTEMPTS, 500, "dead leased queued succeeded", id="attempts"),
        pytest.param(OPERATORS, 1_000, "cancelled leased queued succeeded", id="operators"),
        pytest.param(PRODUCERS, 1_000, "leased queued succeeded", id="producers"),
    ],
)
def test_every_interleaving_within_the_bounds_keeps_the_promises(
    start: World, at_least: int, statuses: str
) -> None:
    explored = explore(start)

    assert explored.broken == "", _told(explored)
    assert explored.worlds >= at_least
    assert sorted(explored.statuses) == statuses.split()


def test_bounds_that_allow_nothing_leave_one_world() -> None:
    explored = explore(World(rows=(_ONE,), allowed=Allowed(leases=0)))

    assert (explored.worlds, explored.steps) == (1, 0)


# --- faults that are planted, and must be found


def _any_live_lease(task: Task, *, token: LeaseToken, now: datetime) -> Leased:  # noqa: ARG001
    if isinstance(task.state, Leased) and not task.state.lease.expired(now):
        return task.state
    raise LeaseLostError(task.id, LostReason.LEASE_EXPIRED)


def _lease_of_any_age(task: Task, *, token: LeaseToken, now: datetime) -> Leased:  # noqa: ARG001
    if isinstance(task.state, Leased) and task.state.lease.token == token:
        return task.state
    raise LeaseLostError(task.id, LostReason.LEASE_SUPERSEDED)


def _requeue_of_anything(task: Task, *, now: datetime) -> Task:  # noqa: ARG001
    return attrs.evolve(task, state=Queued(), version=task.version + 1, attempts=0)


def _uncounted(decide: Callable[..., Task]) -> Callable[..., Task]:
    return lambda task, **given: attrs.evolve(decide(task, **given), attempts=task.attempts)


class RefusesBySnapshot(TaskChanger):
    async def _try(self, turn: Mapping[int, Wish]) -> dict[int, Task | TaskQueueError]:
        [wish] = turn.values()
        seen = self._snapshots.recall(wish.task_id)
        if seen is not None:
            try:
                wish.decide(seen, self._clock.now())
            except TaskQueueError as refusal:
                return dict.fromkeys(turn, refusal)
        return await super()._try(turn)


class StoresOverNewerVersions(MemoryTaskRepository):
    async def replace(self, changes: Sequence[Change]) -> Sequence[Replaced | TaskQueueError]:
        found = await self.load([change.old.id for change in changes], with_payload=False)
        return await super().replace(
            [
                attrs.evolve(change, old=stored)
                for change, stored in zip(changes, found.tasks, strict=True)
            ]
        )


class ForgetsNewTasks(MemoryTaskRepository):
    async def add(self, tasks: Sequence[Task]) -> list[Added | Task]:
        await super().add([task for task in tasks if task.version > 1])
        return [Added.STORED for _ in tasks]


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("start", "name", "fault", "broken"),
    [
        (LATE_CALLS, "_live_lease", _any_live_lease, "what is answered OK is stored"),
        (BEATS, "_live_lease", _lease_of_any_age, "a lease that has ended is not used"),
        (BEATS, "expire", _uncounted(lifecycle.expire), "attempts count those that ended"),
        (BEATS, "expire", lambda task, **_: task, "every task can come to an end"),
        (LATE_CALLS, "FREE_RELEASES", 1000, "attempts count those that ended"),
        (LOST_ANSWERS, "_repeats", lambda *_: False, "a repeat is answered OK"),
        (OPERATORS, "requeue", _requeue_of_anything, "what succeeded stays so"),
    ],
)
def test_a_fault_in_the_rules_is_found(
    monkeypatch: pytest.MonkeyPatch, start: World, name: str, fault: object, broken: str
) -> None:
    monkeypatch.setattr(lifecycle, name, fault)

    found = explore(start)

    assert found.broken == broken, _told(found)
    assert len(found.trace) <= LONGEST_TRACE, _told(found)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("start", "kind", "broken"),
    [
        (LATE_CALLS, StoresOverNewerVersions, "each change is a new version"),
        (PRODUCERS, ForgetsNewTasks, "what was acknowledged is stored"),
    ],
)
def test_a_fault_in_the_storage_is_found(start: World, kind: Kind, broken: str) -> None:
    found = explore(start, Rules(kind=kind))

    assert found.broken == broken, _told(found)
    assert len(found.trace) <= LONGEST_TRACE, _told(found)


@pytest.mark.timeout(300)
def test_a_server_that_refuses_by_what_it_remembers_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("leaseq.domain.service.TaskChanger", RefusesBySnapshot)

    found = explore(BEATS)

    assert found.broken == "no lease that lives is refused", _told(found)


def test_a_reaper_that_trusts_its_clock_is_found_with_the_shortest_trace() -> None:
    found = explore(WRONG_CLOCKS, Rules(uncertainty=timedelta(0)))

    assert found.broken == "only its holder ends a lease that lives"
    assert len(found.trace) == 7, _told(found)
    assert found.trace[-1] == "A goes on with reaper's round: replace version 2 by queued: done"


def _told(explored: Explored) -> str:
    return "\n".join([*explored.trace, f"broken: {explored.broken}"])
