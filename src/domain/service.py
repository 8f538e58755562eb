"""
The queue itself, in this process: what producers and workers ask for, carried out.

It awaits ports and asks the clock once per step, as late as it can; what a change means
is decided in `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, assert_never

import attrs

from . import lifecycle, validation
from .changes import Decision, TaskChanger, Wish, sound_wish
from .errors import (
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from .ids import IdempotencyKey, JsonText, LeaseToken, QueueName
from .lease import Lease
from .limits import MAX_JSON_BYTES, MAX_LEASE_PAYLOAD_BYTES
from .ports import Clock, Ids, Jitter, Signal, TaskRepository, WakeUp
from .requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
    Settlement,
)
from .storing import Added, Demand, Found
from .task import Leased, Queued, Task, unreadable_row
from .validation import LeaseTerms
from .views import Beat, Enqueued, LeasedTask, TaskView, leased_view, view

_POLL_AT_LEAST_EVERY: Final = timedelta(seconds=1)
"""A waiting Lease looks again after half of this to all of it, told or not."""

_SHORTEST_POLL: Final = timedelta(milliseconds=1)


@attrs.define(kw_only=True)
class QueueService:
    """A `TaskQueue` on a storage; also takes back leases that were not delivered."""

    _tasks: TaskRepository
    _clock: Clock
    _ids: Ids
    _jitter: Jitter
    _wake_up: WakeUp
    _changer: TaskChanger = attrs.field(init=False)
    _turn: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        """Make what every change goes through."""
        self._changer = TaskChanger(self._tasks, self._clock)

    # --- producers

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        """Store tasks; see `TaskQueue.enqueue`."""
        validation.batch_size("tasks", tasks)
        now = self._clock.now()
        made = [self._made(new, now) for new in tasks]
        sound = [task for task in made if isinstance(task, Task)]
        outcomes = iter(await self._tasks.add(sound) if sound else ())
        answers = [
            _enqueued(new, task, next(outcomes)) if isinstance(task, Task) else task
            for new, task in zip(tasks, made, strict=True)
        ]
        self._wake_up.notify({task.queue for task in sound})
        return answers

    def _made(self, new: NewTask, now: datetime) -> Task | InvalidArgumentError:
        try:
            return validation.make_task(new, task_id=self._ids.task_id(), now=now)
        except InvalidArgumentError as refusal:
            return refusal

    async def get(self, task_id: str) -> TaskView:
        """Return a task; see `TaskQueue.get`."""
        wanted = validation.task_id(task_id)
        found = await self._tasks.load([wanted], with_payload=True)
        if found.unreadable:
            raise UnreadableTaskError(wanted)
        if not found.tasks:
            raise TaskNotFoundError(wanted)
        return view(found.tasks[0])

    # --- workers

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        """Lease tasks, waiting for a first one; see `TaskQueue.lease`."""
        terms = validation.lease_terms(request)
        deadline = self._clock.now() + terms.wait
        with self._wake_up.listen(terms.queues) as signal:
            while True:
                leased = await self._claim(terms)
                if leased or not await self._another_look(terms, deadline, signal):
                    return leased

    async def _another_look(self, terms: LeaseTerms, deadline: datetime, signal: Signal) -> bool:
        now = self._clock.now()
        if now >= deadline:
            return False
        poll = _POLL_AT_LEAST_EVERY * (1 - self._jitter.draw() / 2)
        wake_at = min(deadline, now + poll)
        due_at = await self._tasks.next_due(terms.queues, terms.types, now=now)
        if due_at is not None:
            wake_at = min(wake_at, due_at)
        await signal.wait(timeout=max(_SHORTEST_POLL, wake_at - self._clock.now()))
        return True

    async def _claim(self, terms: LeaseTerms) -> list[LeasedTask]:
        tasks: list[Task] = []
        room = MAX_LEASE_PAYLOAD_BYTES
        for queue in self._in_turn(terms):
            wanted = terms.max_tasks - len(tasks)
            # A claim may give one task of any size, so there must be room for the largest.
            if not wanted or room < MAX_JSON_BYTES:
                break
            found = await self._claim_from(queue, terms, wanted=wanted, room=room)
            tasks += found.tasks
            room -= sum(task.payload_bytes for task in found.tasks)
        now = self._clock.now()
        return [
            leased_view(task, task.state.lease, now=now)
            for task in tasks
            if isinstance(task.state, Leased)
        ]

    async def _claim_from(
        self, queue: QueueName, terms: LeaseTerms, *, wanted: int, room: int
    ) -> Found:
        tokens = [self._ids.lease_token() for _ in range(wanted)]
        now = self._clock.now()
        expires_at = now + terms.lease_duration
        grants = tuple(
            Lease(token=token, holder=terms.worker_id, expires_at=expires_at) for token in tokens
        )
        demand = Demand(queue=queue, types=terms.types, grants=grants, max_bytes=room)
        found = await self._tasks.claim(demand, now=now)
        if found.unreadable:
            error = unreadable_row(terms.worker_id, now=now)
            await self._tasks.quarantine(found.unreadable, error, now=now)
        return found

    def _in_turn(self, terms: LeaseTerms) -> Sequence[QueueName]:
        if terms.strict_order or len(terms.queues) == 1:
            return terms.queues
        self._turn += 1
        first = self._turn % len(terms.queues)
        return terms.queues[first:] + terms.queues[:first]

    async def undo_leases(self, leases: Sequence[LeaseRef]) -> None:
        """Take back leases that did not reach their worker; see `Undo`."""
        self._notify_queued(await self._changer.make([_undo_wish(ref) for ref in leases]))

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        """Extend leases; see `TaskQueue.heartbeat`."""
        validation.batch_size("leases", request.leases)
        duration = validation.heartbeat_duration(request.worker_id, request.lease_duration)
        answers = await self._changer.make(
            [sound_wish(partial(_heartbeat_wish, ref, duration)) for ref in request.leases]
        )
        now = self._clock.now()
        return [_beat(answer, now=now) for answer in answers]

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        """End attempts; see `TaskQueue.settle`."""
        validation.batch_size("settlements", settlements)
        answers = await self._changer.make(
            [sound_wish(partial(self._settle_wish, settlement)) for settlement in settlements]
        )
        self._notify_queued(answers)
        return [answer if isinstance(answer, TaskQueueError) else None for answer in answers]

    def _settle_wish(self, settlement: Settlement) -> Wish:
        task_id, token = validation.lease_ref(settlement.ref)
        decide: Decision
        match settlement:
            case Complete(result=text):
                result = validation.result(text)
                decide = partial(_complete, token, result)
            case Fail():
                validation.retry_after(settlement.retry_after)
                decide = partial(_fail, token, settlement, self._jitter.draw())
            case Release():
                decide = partial(_release, token, self._jitter.draw())
            case _:
                assert_never(settlement)
        return Wish(task_id=task_id, decide=decide)

    def _notify_queued(self, answers: Sequence[Task | TaskQueueError]) -> None:
        queues = {
            answer.queue
            for answer in answers
            if isinstance(answer, Task) and isinstance(answer.state, Queued)
        }
        if queues:
            self._wake_up.notify(queues)


def _complete(token: LeaseToken, result: JsonText | None, task: Task, now: datetime) -> Task:
    return lifecycle.complete(task, token=token, result=result, now=now)


def _fail(token: LeaseToken, settlement: Fail, jitter: float, task: Task, now: datetime) -> Task:
    return lifecycle.fail(
        task,
        token=token,
        error=settlement.error,
        retry=settlement.retry,
        retry_after=settlement.retry_after,
        jitter=jitter,
        now=now,
    )


def _release(token: LeaseToken, jitter: float, task: Task, now: datetime) -> Task:
    return lifecycle.release(task, token=token, jitter=jitter, now=now)


def _heartbeat_wish(ref: LeaseRef, duration: timedelta) -> Wish:
    task_id, token = validation.lease_ref(ref)
    return Wish(
        task_id=task_id,
        decide=lambda task, now: lifecycle.heartbeat(task, token=token, duration=duration, now=now),
    )


def _undo_wish(ref: LeaseRef) -> Wish:
    task_id, token = validation.lease_ref(ref)
    return Wish(
        task_id=task_id,
        decide=lambda task, now: lifecycle.undo_lease(task, token=token, now=now),
    )


def _beat(answer: Task | TaskQueueError, *, now: datetime) -> Beat | TaskQueueError:
    match answer:
        case Task(state=Leased(lease=lease, cancel_requested_at=cancelled_at)):
            return Beat(
                lease_duration=max(timedelta(0), lease.expires_at - now),
                cancel_requested=cancelled_at is not None,
            )
        case Task():
            raise AssertionError("a heartbeat leaves its task leased")
        case refusal:
            return refusal


def _enqueued(
    new: NewTask, task: Task, outcome: Added | Task | TaskQueueError
) -> Enqueued | TaskQueueError:
    if isinstance(outcome, TaskQueueError):
        return outcome
    if isinstance(outcome, Added):
        return Enqueued(task=view(task), created=True)
    if outcome.fingerprint != task.fingerprint and not new.allow_different_payload:
        return IdempotencyKeyReusedError(
            queue=task.queue, key=IdempotencyKey(new.idempotency_key), task_id=outcome.id
        )
    return Enqueued(task=view(outcome), created=False)
