"""What may happen next in a world."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any, Final, TypeVar

import attrs

from leaseq.adapters.memory import MemoryTaskRepository
from leaseq.domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
    Settlement,
)
from leaseq.domain.storing import Replaced
from leaseq.domain.task import TERMINAL, Leased, Queued
from leaseq.domain.views import Enqueued
from leaseq.testing import EMAILS, SECOND, SEND
from protocol.mishaps import Step, die, hang_up, mishaps, spend, tick, told, with_worker
from protocol.promises import (
    PromiseBrokenError,
    check_answer,
    check_change,
    check_decision,
    check_world,
)
from protocol.stepping import (
    Asked,
    Cancel,
    Kind,
    Operation,
    Reap,
    Requeue,
    Stop,
    Stored,
    Turn,
    Undo,
    replay,
    stored_after,
)
from protocol.world import SERVERS, Call, Doing, Worker, World, essence

LEASE: Final = 2 * SECOND
UNCERTAINTY: Final = SECOND
_LONG: Final = 100
_LONGEST_WAY: Final = 5
"""Rounds of reaper and worker after which each task of a small world has ended."""

_T = TypeVar("_T")


@attrs.define(kw_only=True)
class Rules:
    """How a world goes on; faults may be planted in it."""

    kind: Kind = MemoryTaskRepository
    uncertainty: timedelta = UNCERTAINTY
    _known: dict[Hashable, Any] = attrs.field(init=False, factory=dict)

    def steps(self, world: World) -> Iterator[Step]:
        """Return all that may happen next, each by its name."""
        for number in range(len(world.workers)):
            yield from self._worker_steps(world, number)
        for call in dict.fromkeys(world.calls):
            yield self._going_on(world, call), partial(self._go_on, world, call)
            if not call.asker and isinstance(call.asked, LeaseRequest):
                label = f"{self._going_on(world, call)}, and nobody notices that it is forgotten"
                yield label, partial(self._go_on, world, call, unnoticed=True)
        yield from self._others_steps(world)
        yield from mishaps(world)
        if world.allowed.ticks:
            yield f"time passes: {world.time + 1}", partial(tick, world)

    # --- those who ask

    def _worker_steps(self, world: World, number: int) -> Iterator[Step]:
        worker = world.workers[number]
        name = f"worker {number + 1}"
        call = world.call_of(name)
        if call is None:
            yield from self._asking(world, number)
        elif world.allowed.hang_ups:
            yield f"{name} waits no longer", partial(hang_up, world, call)
        if worker.doing in {Doing.HOLDING, Doing.SETTLING} and world.allowed.deaths:
            yield f"{name} dies", partial(die, world, number)

    def _asking(self, world: World, number: int) -> Iterator[Step]:
        name = f"worker {number + 1}"
        for verb, asked, then in _asks(world, number):
            token = f"{number + 1}-{then.leases}"
            turned = with_worker(world, number, then)
            if then.doing is Doing.BEATING:
                turned = spend(turned, "beats")
            for server, label in enumerate(SERVERS):
                words = f"{name} asks {label} to {verb}"
                yield words, partial(self._begin, turned, name, server, asked, token)

    def _others_steps(self, world: World) -> Iterator[Step]:
        if world.call_of("reaper") is None and any(
            isinstance(row.state, Leased) and row.state.lease.expires_at <= world.now(0)
            for row in world.rows
        ):
            yield "the reaper looks, in A", partial(self._begin, world, "reaper", 0, Reap(), "")
        if world.call_of("operator") is None:
            for row in world.rows:
                if world.allowed.cancels and row.status not in TERMINAL:
                    spent = spend(world, "cancels")
                    cancel = Cancel(task_id=row.id)
                    begin = partial(self._begin, spent, "operator", 1, cancel, "")
                    yield "an operator cancels, in B", begin
                if world.allowed.requeues and row.status in TERMINAL:
                    spent = spend(world, "requeues")
                    requeue = Requeue(task_id=row.id)
                    begin = partial(self._begin, spent, "operator", 1, requeue, "")
                    yield "an operator requeues, in B", begin
        if world.call_of("producer") is None and world.allowed.enqueues:
            spent = spend(world, "enqueues")
            new = NewTask(type=SEND, queue=EMAILS, idempotency_key="once")
            token = f"new-{world.allowed.enqueues}"
            for server, label in enumerate(SERVERS):
                begin = partial(self._begin, spent, "producer", server, new, token)
                yield f"a producer enqueues, in {label}", begin

    # --- calls

    def _begin(self, world: World, asker: str, server: int, asked: Asked, token: str) -> World:
        blank = Call(
            asker=asker,
            server=server,
            asked=asked,
            token=token,
            turns=(),
            operation=Operation(""),
        )
        return self._after_turn(world, blank, response=None)

    def _going_on(self, world: World, call: Call) -> str:
        whose = f"{call.asker}'s" if call.asker else "a forgotten"
        what = _verb(call.asked)
        method = call.operation.method
        if method != "replace":
            return f"{SERVERS[call.server]} goes on with {whose} {what}: {method}"
        outcome = self._stored(world, call.operation).response[0]
        change = call.operation.given[0][0]
        word = outcome.name.lower() if isinstance(outcome, Replaced) else outcome
        swap = f"replace version {change.old.version} by {change.new.status}"
        return f"{SERVERS[call.server]} goes on with {whose} {what}: {swap}: {word}"

    def _go_on(self, world: World, call: Call, *, unnoticed: bool = False) -> World:
        stored = self._stored(world, call.operation)
        calls = list(world.calls)
        calls.remove(call)
        after = attrs.evolve(world, rows=stored.rows, calls=tuple(calls))
        for new in after.rows:
            old = world.row(new.id)
            if old is not None and essence(old) != essence(new):
                check_change(world, call, old, new)
        return self._after_turn(after, call, response=stored.response, unnoticed=unnoticed)

    def _after_turn(
        self, world: World, call: Call, *, response: Any, unnoticed: bool = False
    ) -> World:
        server = world.servers[call.server]
        turn = Turn(seen=server.seen, now=world.now(call.server), response=response)
        call = attrs.evolve(call, turns=(*call.turns, turn))
        stop = self._stop(call)
        servers = list(world.servers)
        servers[call.server] = attrs.evolve(server, seen=stop.seen)
        world = attrs.evolve(world, servers=tuple(servers))
        if stop.operation is not None:
            check_decision(world, call.server, call.asked, stop.operation)
            waiting = attrs.evolve(call, operation=stop.operation)
            world = attrs.evolve(world, calls=(*world.calls, waiting))
        else:
            check_answer(world, call, stop.answer)
            world = self._answered(world, call, stop.answer, unnoticed=unnoticed)
        check_world(world)
        return world

    def _answered(self, world: World, call: Call, answer: Any, *, unnoticed: bool) -> World:
        if call.asker == "producer":
            ids = {each.task.id for each in answer if isinstance(each, Enqueued)}
            return attrs.evolve(world, acknowledged=world.acknowledged | ids)
        if not call.asker and not unnoticed and isinstance(call.asked, LeaseRequest) and answer:
            undo = Undo(ref=answer[0].ref)
            return self._begin(world, "", call.server, undo, "")
        if call.asker.startswith("worker"):
            number = int(call.asker[-1]) - 1
            now = world.now(call.server)
            after = told(world.workers[number], answer, now)
            return with_worker(world, number, after)
        return world

    # --- the way out

    def require_an_end(self, world: World) -> None:
        """
        Check that from here all tasks can come to an end.

        One way is tried: those who ask go away, time passes, and one worker does its work by
        server A, with what that server remembers.
        """
        world = attrs.evolve(world, calls=(), workers=(Worker(),))
        asker = "worker 1"
        for nth in range(_LONGEST_WAY):
            if all(row.status in TERMINAL for row in world.rows):
                return
            world = attrs.evolve(world, time=world.time + _LONG)
            lease = _lease_request(0)
            world = self._to_its_end(world, "reaper", Reap(), "")
            world = attrs.evolve(world, time=world.time + _LONG)
            world = self._to_its_end(world, asker, lease, f"way-out-{nth}")
            ref = world.workers[0].ref
            if ref is not None:
                world = self._to_its_end(world, asker, Complete(ref=ref), "")
        raise PromiseBrokenError("every task can come to an end")

    def _to_its_end(self, world: World, asker: str, asked: Asked, token: str) -> World:
        world = self._begin(world, asker, 0, asked, token)
        while world.calls:
            world = self._go_on(world, world.calls[0])
        return world

    # --- what is worked out once

    def _stored(self, world: World, operation: Operation) -> Stored:
        return self._once(
            ("stored", tuple(map(essence, world.rows)), operation),
            lambda: stored_after(world.rows, operation, self.kind),
        )

    def _stop(self, call: Call) -> Stop:
        turns = tuple((id(turn.response), turn.now, turn.seen) for turn in call.turns)
        return self._once(
            ("stop", call.asked, call.token, turns),
            lambda: replay(call.asked, call.token, call.turns, self.uncertainty),
        )

    def _once(self, what: Hashable, work: Callable[[], _T]) -> _T:
        if what not in self._known:
            self._known[what] = work()
        known: _T = self._known[what]
        return known


def _asks(world: World, number: int) -> list[tuple[str, Asked, Worker]]:
    """Return what a worker that waits for nothing may ask, and as what it then waits."""
    worker = world.workers[number]
    match worker:
        case Worker(doing=Doing.IDLE, leases=leases) if leases < world.allowed.leases:
            if not any(isinstance(row.state, Queued) for row in world.rows):
                return []
            leasing = Worker(doing=Doing.LEASING, leases=leases + 1)
            return [("lease", _lease_request(number), leasing)]
        case Worker(doing=Doing.HOLDING, ref=LeaseRef() as ref):
            return _asks_of_holder(world, worker, ref, number)
        case Worker(doing=Doing.SETTLING, settlement=settlement) if settlement is not None:
            return [(_verb(settlement), settlement, worker)]
        case _:
            return []


def _lease_request(number: int) -> LeaseRequest:
    return LeaseRequest(worker_id=f"worker-{number + 1}", queues=(EMAILS,), lease_duration=LEASE)


def _asks_of_holder(
    world: World, worker: Worker, ref: LeaseRef, number: int
) -> list[tuple[str, Asked, Worker]]:
    makings: dict[str, Settlement] = {
        "complete": Complete(ref=ref),
        "fail": Fail(ref=ref),
        "release": Release(ref=ref),
    }
    asks: list[tuple[str, Asked, Worker]] = []
    for verb in world.allowed.settlements:
        settling = attrs.evolve(worker, doing=Doing.SETTLING, until=None, settlement=makings[verb])
        asks.append((verb, makings[verb], settling))
    if world.allowed.beats:
        beat = HeartbeatRequest(
            worker_id=f"worker-{number + 1}", leases=(ref,), lease_duration=LEASE
        )
        asks.append(("beat", beat, attrs.evolve(worker, doing=Doing.BEATING)))
    return asks


def _verb(asked: Asked) -> str:
    return {
        LeaseRequest: "lease",
        HeartbeatRequest: "beat",
        NewTask: "enqueue",
        Reap: "round",
    }.get(type(asked), type(asked).__name__.lower())
