"""What holds after anything that workers, producers and operators may do."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final

import attrs
import pytest

from ...domain.ids import TaskId
from ...domain.ports import Maintenance, TaskAdmin, TaskQueue
from ...domain.requests import Complete, Fail, HeartbeatRequest, PageRequest, Release, TaskFilter
from ...domain.task import TERMINAL, Status
from ...domain.views import Beat, LeasedTask, TaskView
from ..builders import SECOND
from ..fakes import Time
from .queue_fixtures import QUICK, QueueFixtures, enqueue, lease, ref, settle

TASKS: Final = 12
STEPS: Final = 200


class ConservationContract(QueueFixtures):
    """No task is lost, none is held twice at once, none has more attempts than it may."""

    @pytest.mark.parametrize("seed", range(3))
    async def test_any_course_of_events_keeps_the_promises(
        self,
        queue: TaskQueue,
        admin: TaskAdmin,
        maintenance: Maintenance,
        time: Time,
        seed: int,
    ) -> None:
        self.needs_manual_time()
        storm = Storm(queue=queue, admin=admin, maintenance=maintenance, time=time, seed=seed)
        tasks = await enqueue(queue, *[attrs.evolve(QUICK, max_attempts=3)] * TASKS)
        storm.seen = {task.id: task for task in tasks}

        for _ in range(STEPS):
            await storm.step()

        assert storm.happened.keys() == storm.events.keys()


@attrs.define(kw_only=True)
class Storm:
    """Does what the dice say, and checks after each step what must be true all the same."""

    queue: TaskQueue
    admin: TaskAdmin
    maintenance: Maintenance
    time: Time
    seed: int
    seen: dict[TaskId, TaskView] = attrs.field(factory=dict)
    happened: Counter[str] = attrs.field(factory=Counter)
    _dice: random.Random = attrs.field(init=False)
    _leases: list[LeasedTask] = attrs.field(factory=list)
    _holding: dict[TaskId, LeasedTask] = attrs.field(factory=dict)
    _settled: set[tuple[str, type]] = attrs.field(factory=set)

    def __attrs_post_init__(self) -> None:
        """Take the dice that the seed gives."""
        self._dice = random.Random(self.seed)  # noqa: S311  the same course every time

    @property
    def events(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Return what may happen."""
        return {
            "lease": self._lease,
            "settle": self._settle,
            "beat": self._beat,
            "time": self._let_time_pass,
            "reap": self._reap,
            "cancel": self._cancel,
            "requeue": self._requeue,
        }

    async def step(self) -> None:
        """Let one thing happen."""
        event = self._dice.choice(["lease", "settle", *self.events])
        self.happened[event] += 1
        await self.events[event]()
        await self._check(event)

    async def _lease(self) -> None:
        for leased in await lease(self.queue, max_tasks=2, lease_duration=SECOND):
            before = self.seen[leased.task.id]
            earlier = [each for each in self._leases if each.task.id == leased.task.id]
            assert before.status == Status.QUEUED
            assert before.run_after <= self.time.now()
            assert leased.attempt == before.attempts + 1
            assert leased.lease_number == len(earlier) + 1
            self._leases.append(leased)
            self._holding[leased.task.id] = leased

    async def _settle(self) -> None:
        if not self._leases:
            return
        leased = self._dice.choice([*self._leases, *self._holding.values()])
        verb = self._dice.choice([Complete, Fail, Release])
        live = self._is_live(leased)

        answer = await settle(self.queue, verb(ref=ref(leased)))

        repeated = (leased.lease_token, verb) in self._settled
        assert (answer is None) or not live, answer
        assert live or repeated or answer is not None
        if live:
            self._settled.add((leased.lease_token, verb))

    async def _beat(self) -> None:
        if not self._leases:
            return
        leased = self._dice.choice(self._leases)
        live = self._is_live(leased)

        [answer] = await self.queue.heartbeat(
            HeartbeatRequest(worker_id="w", leases=(ref(leased),), lease_duration=SECOND)
        )

        assert isinstance(answer, Beat) == live

    async def _let_time_pass(self) -> None:
        await self.time.pass_by(SECOND / 4)

    async def _reap(self) -> None:
        over = [leased for leased in self._holding.values() if not self._is_live(leased)]

        assert await self.maintenance.reap() == len(over)

    async def _cancel(self) -> None:
        await self.admin.cancel([self._dice.choice(list(self.seen))])

    async def _requeue(self) -> None:
        await self.admin.requeue([self._dice.choice(list(self.seen))])

    def _is_live(self, leased: LeasedTask) -> bool:
        shown = self.seen[leased.task.id]
        return (
            self._holding.get(leased.task.id) is leased
            and shown.lease_expires_at is not None
            and shown.lease_expires_at > self.time.now()
        )

    async def _check(self, event: str) -> None:
        page = await self.admin.list_tasks(TaskFilter(), PageRequest(size=1000))
        [shown] = await self.admin.list_queues()
        now = {task.id: task for task in page.tasks}
        assert now.keys() == self.seen.keys()
        assert {status: depth.count for status, depth in shown.depths.items()} == Counter(
            task.status for task in page.tasks
        )
        for task_id, task in now.items():
            _check_change(self.seen[task_id], task, event)
        self.seen = now
        self._holding = {
            task_id: leased
            for task_id, leased in self._holding.items()
            if now[task_id].status == Status.LEASED
        }


def _check_change(before: TaskView, after: TaskView, event: str) -> None:
    assert after.attempts <= after.max_attempts
    assert (after.status == Status.LEASED) == (after.lease_owner is not None)
    assert (after.status in TERMINAL) == (after.finished_at is not None)
    if after.status == Status.DEAD:
        assert after.attempts == after.max_attempts
    if before.status in TERMINAL and after != before:
        assert (event, before.status != Status.SUCCEEDED) == ("requeue", True)
        assert (after.status, after.attempts) == (Status.QUEUED, 0)
    elif event != "requeue":
        assert before.attempts <= after.attempts <= before.attempts + 1
