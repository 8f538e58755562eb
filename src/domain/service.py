"""
The queue itself, in this process: what producers and workers ask for, carried out.

It awaits ports and asks the clock once per step, as late as it can; what a change means
is decided in `lifecycle`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import assert_never

import attrs

from . import lifecycle, validation
from .changes import Decision, TaskChanger, Wish, sound_wish
from .errors import (
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    StorageError,
    TaskIdReusedError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from .ids import IdempotencyKey, JsonText, LeaseToken, QueueName
from .lease import Lease
from .limits import MAX_BATCH, MAX_JSON_BYTES, MAX_LEASE_PAYLOAD_BYTES
from .ports import Clock, Ids, Jitter, TaskRepository, WakeUp
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
from .snapshots import Snapshots
from .storing import Added, Demand, Found
from .task import Queued, Task, held_state, unreadable_row
from .validation import LeaseTerms
from .views import Beat, Enqueued, LeasedTask, Taken, TaskView, leased_view, view


class _Grants:
    """Who gets the n-th task of a look: the callers in turn, each up to what it wants."""

    def __init__(self, callers: Sequence[LeaseTerms], ids: Ids) -> None:
        self._callers = callers
        turns = (
            (nth, index) for index, terms in enumerate(callers) for nth in range(terms.max_tasks)
        )
        order = [index for _, index in sorted(turns)][:MAX_BATCH]
        self._receivers = {ids.lease_token(): index for index in order}

    @property
    def wanted(self) -> int:
        """How many tasks the callers want in all, cut to what one claim may give."""
        return len(self._receivers)

    def leases(self, after: int, *, now: datetime) -> tuple[Lease, ...]:
        """Return the leases to grant at `now` once the first `after` are granted."""
        return tuple(
            Lease(
                token=token,
                holder=self._callers[index].worker_id,
                expires_at=now + self._callers[index].lease_duration,
            )
            for token, index in islice(self._receivers.items(), after, None)
        )

    def dealt(self, tasks: Sequence[Task], *, now: datetime, dry: bool) -> Taken:
        """Return the tasks by caller, as each sees them at `now`."""
        dealt: tuple[list[LeasedTask], ...] = tuple([] for _ in self._callers)
        for task in tasks:
            lease = held_state(task).lease
            dealt[self._receivers[lease.token]].append(leased_view(task, lease, now=now))
        return Taken(tasks=dealt, dry=dry)


@attrs.define(kw_only=True)
class QueueService:
    """A `TaskQueue` on a storage; also takes back leases that were not delivered."""

    _tasks: TaskRepository
    _clock: Clock
    _ids: Ids
    _jitter: Jitter
    _wake_up: WakeUp
    _snapshots: Snapshots = attrs.field(init=False, factory=Snapshots)
    _changer: TaskChanger = attrs.field(init=False)
    _turn: int = attrs.field(init=False, default=0)

    def __attrs_post_init__(self) -> None:
        """Make what every change goes through."""
        self._changer = TaskChanger(self._tasks, self._clock, self._snapshots)

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
        """Lease what is due now: this `TaskQueue` does not wait, whoever is around it does."""
        taken = await self.take([validation.lease_terms(request)])
        return taken.tasks[0]

    async def take(self, callers: Sequence[LeaseTerms]) -> Taken:
        """
        Look once for callers that ask for the same queues and types: a task to each in turn.

        Not to be cancelled while it runs: leases that were granted would be nobody's.
        """
        grants = _Grants(callers, self._ids)
        tasks: list[Task] = []
        room = MAX_LEASE_PAYLOAD_BYTES
        dry = True
        for queue in self._in_turn(callers[0]):
            wanted = grants.wanted - len(tasks)
            # A claim may give one task of any size, so there must be room for the largest.
            if not wanted or room < MAX_JSON_BYTES:
                dry = False
                break
            try:
                found = await self._claim(queue, callers[0], grants, after=len(tasks), room=room)
            except StorageError:
                if not tasks:
                    raise
                break  # what the queues before gave is out already, and worth delivering
            tasks += found.tasks
            room -= sum(task.payload_bytes for task in found.tasks)
            dry = dry and len(found.tasks) + len(found.unreadable) < wanted
        return grants.dealt(tasks, now=self._clock.now(), dry=dry and room >= MAX_JSON_BYTES)

    async def next_due(self, terms: LeaseTerms) -> datetime | None:
        """Return when the next task for such a caller becomes due; nothing about those due."""
        return await self._tasks.next_due(terms.queues, terms.types, now=self._clock.now())

    async def _claim(
        self, queue: QueueName, terms: LeaseTerms, grants: _Grants, *, after: int, room: int
    ) -> Found:
        now = self._clock.now()
        demand = Demand(
            queue=queue, types=terms.types, grants=grants.leases(after, now=now), max_bytes=room
        )
        found = await self._tasks.claim(demand, now=now)
        if found.unreadable:
            error = unreadable_row(terms.worker_id, now=now)
            await self._tasks.quarantine(found.unreadable, error, now=now)
        for task in found.tasks:
            self._snapshots.keep(task)
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
                decide = partial(_release, token, settlement, self._jitter.draw())
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


def _release(
    token: LeaseToken, settlement: Release, jitter: float, task: Task, now: datetime
) -> Task:
    return lifecycle.release(
        task, token=token, undelivered=settlement.undelivered, jitter=jitter, now=now
    )


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
    if isinstance(answer, TaskQueueError):
        return answer
    held = held_state(answer)
    return Beat(
        lease_duration=max(timedelta(0), held.lease.expires_at - now),
        cancel_requested=held.cancel_requested_at is not None,
    )


def _enqueued(
    new: NewTask, task: Task, outcome: Added | Task | TaskQueueError
) -> Enqueued | TaskQueueError:
    if isinstance(outcome, TaskQueueError):
        return outcome
    if isinstance(outcome, Added):
        return Enqueued(task=view(task), created=True)
    if outcome.id == task.id:
        return TaskIdReusedError(task.id)
    if outcome.fingerprint != task.fingerprint and not new.allow_different_payload:
        return IdempotencyKeyReusedError(
            queue=task.queue, key=IdempotencyKey(new.idempotency_key), task_id=outcome.id
        )
    return Enqueued(task=view(outcome), created=False)
