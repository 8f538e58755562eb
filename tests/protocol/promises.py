"""What must hold of every step, whatever came before it."""

from __future__ import annotations

from typing import Any

from leaseq.domain.errors import LeaseLostError, TaskQueueError
from leaseq.domain.limits import FREE_RELEASES
from leaseq.domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    Release,
)
from leaseq.domain.task import TERMINAL, Leased, Status, Task, Verb
from protocol.stepping import Asked, Operation, Reap, Requeue, Undo
from protocol.world import Call, Doing, World

_VERBS: dict[type[Asked], Verb] = {
    Complete: Verb.COMPLETE,
    Fail: Verb.FAIL,
    Release: Verb.RELEASE,
}


class PromiseBrokenError(Exception):
    """A step did what must never be."""


def _require(promise: str, *, holds: bool) -> None:
    if not holds:
        raise PromiseBrokenError(promise)


def check_world(world: World) -> None:
    """Check what holds at each moment."""
    holders = [
        worker
        for worker in world.workers
        if worker.doing in {Doing.HOLDING, Doing.BEATING}
        and worker.until is not None
        and worker.until > world.now()
    ]
    held = [worker.ref.task_id for worker in holders if worker.ref is not None]
    _require("no two workers hold one task", holds=len(set(held)) == len(held))
    stored = {row.id for row in world.rows}
    _require("what was acknowledged is stored", holds=world.acknowledged <= stored)
    keys = [row.idempotency_key for row in world.rows if row.idempotency_key is not None]
    _require("a key has one task", holds=len(set(keys)) == len(keys))
    for row in world.rows:
        _require("attempts are bounded", holds=row.attempts <= row.max_attempts)
        most = FREE_RELEASES + row.max_attempts
        _require("releases are bounded", holds=row.releases <= most)


def check_change(world: World, call: Call, old: Task, new: Task) -> None:
    """Check what a call made of a stored task."""
    asked = call.asked
    _require("each change is a new version", holds=new.version == old.version + 1)
    leases = int(isinstance(asked, LeaseRequest))
    _require(
        "each lease, and nothing else, raises the lease number",
        holds=new.lease_number == old.lease_number + leases,
    )
    _require("attempts count those that ended", holds=new.attempts == _attempts(asked, old))
    _require("what succeeded stays so", holds=old.status is not Status.SUCCEEDED)
    if old.status in TERMINAL:
        _require("only a requeue changes what ended", holds=isinstance(asked, Requeue))
    ref = ref_of(asked)
    held = old.state.lease if isinstance(old.state, Leased) else None
    if ref is not None:
        _require(
            "who has not the lease changes nothing",
            holds=held is not None and held.token == ref.lease_token,
        )
    if held is not None and held.expires_at > world.now() and not isinstance(new.state, Leased):
        _require("only its holder ends a lease that lives", holds=ref is not None)
    if isinstance(new.state, Leased) and held is not None:
        kept = new.state.lease
        _require("no lease is given twice", holds=kept.token == held.token)
        _require("no lease becomes shorter", holds=kept.expires_at >= held.expires_at)


def check_decision(world: World, server: int, asked: Asked, operation: Operation) -> None:
    """Check that what is about to be stored for a worker was decided while its lease lived."""
    if isinstance(asked, Undo) or operation.method != "replace" or ref_of(asked) is None:
        return
    old = operation.given[0][0].old
    _require(
        "a lease that has ended is not used",
        holds=isinstance(old.state, Leased) and old.state.lease.expires_at > world.now(server),
    )


def check_answer(world: World, call: Call, answer: Any) -> None:
    """Check what a worker is told about its lease, at the moment at which it was decided."""
    ref = ref_of(call.asked)
    row = world.row(ref.task_id) if ref is not None else None
    if ref is None or row is None or isinstance(call.asked, Undo):
        return
    told = answer[0]
    held = row.state.lease if isinstance(row.state, Leased) else None
    current = held is not None and held.token == ref.lease_token
    settled = row.settled
    verb = _VERBS.get(type(call.asked))
    repeats = settled is not None and settled.token == ref.lease_token and settled.verb is verb
    if isinstance(told, LeaseLostError):
        lives = current and held is not None and held.expires_at > world.now(call.server)
        _require("no lease that lives is refused", holds=not lives)
        _require("a repeat is answered OK", holds=not repeats)
    elif not isinstance(told, TaskQueueError):
        done = current if isinstance(call.asked, HeartbeatRequest) else repeats
        _require("what is answered OK is stored", holds=done)


def ref_of(asked: Asked) -> LeaseRef | None:
    """Return by which lease something is asked."""
    match asked:
        case HeartbeatRequest(leases=(ref,)):
            return ref
        case Complete(ref=ref) | Fail(ref=ref) | Release(ref=ref) | Undo(ref=ref):
            return ref
        case _:
            return None


def _attempts(asked: Asked, old: Task) -> int:
    match asked:
        case Complete() | Fail() | Reap():
            return old.attempts + 1
        case Release():
            return old.attempts + int(old.releases >= FREE_RELEASES)
        case Requeue():
            return 0
        case _:
            return old.attempts
