"""The whole system at one moment, as a value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from datetime import datetime
from enum import Enum
from typing import Final

import attrs

from leaseq.domain.requests import LeaseRef, Settlement
from leaseq.domain.storing import Change
from leaseq.domain.task import Cancelled, Dead, Failed, Leased, Queued, Succeeded, Task
from leaseq.testing import NOON, SECOND
from protocol.stepping import Asked, Operation, Turn

SERVERS: Final = ("A", "B")
AHEAD: Final = (1, -1)
"""By how much a server's clock is ahead of the storage's while it is wrong, in ticks."""


class Doing(Enum):
    """What a worker is about."""

    IDLE = "idle"
    LEASING = "leasing"
    HOLDING = "holding"
    BEATING = "beating"
    SETTLING = "settling"


@attrs.frozen(kw_only=True)
class Worker:
    """A worker, as it sees itself."""

    doing: Doing = Doing.IDLE
    leases: int = 0
    """Lease calls so far."""

    ref: LeaseRef | None = None
    until: datetime | None = None
    """The end of the lease, as it was told last."""

    settlement: Settlement | None = None


@attrs.frozen(kw_only=True)
class Server:
    """A server: what it saw of tasks, and whether its clock is wrong."""

    seen: tuple[Task, ...] = ()
    wrong: bool = False


@attrs.frozen(kw_only=True)
class Call:
    """A call under way in a server, stopped at a word to the storage."""

    asker: str
    """Who waits for the answer; empty: nobody any more."""

    server: int
    asked: Asked
    token: str
    turns: tuple[Turn, ...]
    operation: Operation


@attrs.frozen(kw_only=True)
class Allowed:
    """What may still happen, so that the states are finitely many."""

    ticks: int = 0
    leases: int = 1
    """Of each worker."""

    beats: int = 0
    settlements: tuple[str, ...] = ("complete",)
    """With which words workers may end a lease; these are not used up."""

    deaths: int = 0
    """Of workers."""

    crashes: int = 0
    """Of servers."""

    hang_ups: int = 0
    """Of callers, who then ask again; so an answer is lost, or late, or a call is repeated."""

    wrong_clocks: int = 0
    enqueues: int = 0
    cancels: int = 0
    requeues: int = 0


@attrs.frozen(kw_only=True)
class World:
    """Everything."""

    time: int = 0
    """Of the storage's clock, in ticks of a second since noon."""

    rows: tuple[Task, ...]
    servers: tuple[Server, ...] = (Server(), Server())
    workers: tuple[Worker, ...] = (Worker(), Worker())
    calls: tuple[Call, ...] = ()
    acknowledged: frozenset[str] = frozenset()
    """Of tasks whose enqueue was."""

    allowed: Allowed

    def now(self, server: int | None = None) -> datetime:
        """Return the time by the clock of a server, or of the storage."""
        wrong = server is not None and self.servers[server].wrong
        return NOON + (self.time + (AHEAD[server] if server is not None and wrong else 0)) * SECOND

    def row(self, task_id: str) -> Task | None:
        """Return what is stored under an id."""
        return next((row for row in self.rows if row.id == task_id), None)

    def call_of(self, asker: str) -> Call | None:
        """Return the call whose answer somebody waits for."""
        return next((call for call in self.calls if call.asker == asker), None)

    def key(self) -> Hashable:
        """
        Return what tells this world from others, as far as anything that may follow goes.

        Left out is what no rule reads: when a task was changed, and the history of errors.
        Of a call under way only its next word to the storage counts, and how many there were
        before: nothing else is kept by `TaskChanger` from one try to the next.
        """
        return (
            self.time,
            tuple(essence(row) for row in self.rows),
            tuple((server.wrong, tuple(map(essence, server.seen))) for server in self.servers),
            self.workers,
            frozenset(Counter(map(_essence_of_call, self.calls)).items()),
            self.acknowledged,
            self.allowed,
        )


def essence(task: Task) -> Hashable:
    """Return what the rules of the life cycle read of a task."""
    return (
        task.id,
        _essence_of_state(task),
        task.run_after,
        task.attempts,
        task.releases,
        task.lease_number,
        task.settled,
        task.version,
    )


def _essence_of_state(task: Task) -> Hashable:
    match task.state:
        case Leased(lease=lease, cancel_requested_at=requested):
            return (lease, requested is not None)
        case Queued() | Succeeded() | Failed() | Dead() | Cancelled():
            return task.status


def _essence_of_call(call: Call) -> Hashable:
    word = call.operation
    said = (word.method, tuple(map(_essence_of_given, word.given)), word.options)
    return (call.asker, call.server, call.asked, len(call.turns), said)


def _essence_of_given(given: object) -> Hashable:
    match given:
        case tuple():
            return tuple(map(_essence_of_given, given))
        case Change(old=old, new=new):
            return (essence(old), essence(new))
        case Task():
            return essence(given)
        case _:
            assert isinstance(given, Hashable)
            return given
