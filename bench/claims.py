"""
What a claim costs beside many tasks that it does not want.

Each claim is measured in turn with the same claim on a storage that holds next to
nothing, so that whatever else the machine does meanwhile weighs on both. What comes out too
slow is measured longer: all its claims count, and the noise of neighbours, who come and go,
weighs less in more of them, where a real cost does not. First the planner knows nothing of
the tasks (they came since the last ANALYZE), then everything.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import UTC, datetime, timedelta
from statistics import median
from time import perf_counter
from typing import Final, Protocol

import attrs

from leaseq.adapters.ids import RandomIds
from leaseq.domain.ids import QueueName, TaskType, WorkerId
from leaseq.domain.lease import Lease
from leaseq.domain.limits import MAX_LEASE_PAYLOAD_BYTES
from leaseq.domain.ports import Storage
from leaseq.domain.storing import Demand
from report import Report, milliseconds

QUEUE: Final = "full"
WANTED: Final = "send"
HOUR: Final = timedelta(hours=1)
_IDS: Final = RandomIds()
_LIMIT: Final = 2.0
_TRIES: Final = 3
_WARM_UP: Final = 5


@attrs.frozen(kw_only=True)
class Rows:
    """Many tasks that differ in nothing that matters."""

    number: int
    type: str = WANTED
    priority: int = 0
    status: str = "queued"
    due_in: timedelta = -HOUR


@attrs.frozen(kw_only=True)
class Shape:
    """What is in the way."""

    name: str
    rows: Rows
    any_type: bool = True
    """Whether a claim of any type is for what has been put beside it."""


def shapes(scale: float) -> list[Shape]:
    """Return what a claim must not mind; `scale` is 1 for the numbers that are promised."""
    million, few = int(1_000_000 * scale), int(100_000 * scale)
    return [
        Shape(name=f"{million:,} due", rows=Rows(number=million)),
        Shape(
            name=f"{few:,} for later, more urgent",
            rows=Rows(number=few, priority=9, due_in=24 * HOUR),
        ),
        Shape(
            name=f"{million:,} of another type",
            rows=Rows(number=million, type="resize", priority=9),
            any_type=False,
        ),
        Shape(name=f"{million:,} finished", rows=Rows(number=million, status="succeeded")),
    ]


class Ground(Protocol):
    """An open storage, and what SQL does to it behind its back."""

    @property
    def storage(self) -> Storage:
        """Where claims are measured."""
        ...

    async def fill(self, rows: Rows) -> None:
        """Store tasks."""
        ...

    async def analyze(self) -> None:
        """Let the planner look at what there is."""
        ...

    async def indexes(self, demand: Demand, *, now: datetime) -> Collection[str]:
        """Return how EXPLAIN says that this claim reads the tasks, without leasing any."""
        ...


OpenGround = Callable[[], AbstractAsyncContextManager[Ground]]


@attrs.define(kw_only=True)
class Claims:
    """Measures on one kind of storage."""

    database: str
    open_ground: OpenGround
    expected_indexes: dict[bool, Collection[str]]
    """For claims of some types (True) and of any; beside the primary keys."""

    rounds: int
    _ratios: dict[str, float] = attrs.field(init=False, factory=dict)
    _astray: list[str] = attrs.field(init=False, factory=list)
    """Claims that read something else than their index."""

    def conclude(self, report: Report) -> None:
        """Require of all that was measured what has to hold."""
        worst = max(self._ratios, key=self._ratios.__getitem__)
        what = f"{self.database}, claims beside many tasks to claims beside none, the worst"
        report.at_most(_LIMIT, self._ratios[worst], f"{what} ({worst})")
        indexes = f"{self.database}, EXPLAIN shows the index of the claim in each case"
        report.require("; not: ".join([indexes, *self._astray]), holds=not self._astray)

    async def measure(self, shape: Shape) -> list[list[str]]:
        """Return the rows of a table: what claims cost beside `shape`."""
        table = []
        async with _pair(self.open_ground) as (empty, full):
            demands = self._demands(shape)
            seeds = Rows(number=2 * _TRIES * (self.rounds + _WARM_UP) * len(demands))
            # Plans made for an empty table must do for a full one.
            for ground in (empty, full):
                for types in demands.values():
                    await ground.storage.tasks.claim(_demand(types), now=_now(ground))
                    await ground.indexes(_demand(types), now=_now(ground))
            await full.fill(shape.rows)
            for ground in (empty, full):
                await ground.fill(seeds)
            for known in ("unknown to the planner", "after ANALYZE"):
                for name, types in demands.items():
                    what = f"{name}; {shape.name}, {known}"
                    table.append(await self._compare(empty, full, types, what))
                for ground in (empty, full):
                    await ground.analyze()
        return table

    def _demands(self, shape: Shape) -> dict[str, tuple[str, ...]]:
        one: dict[str, tuple[str, ...]] = {
            "one of a type": (WANTED,),
            "none to be had": ("nobody-has-this",),
        }
        return one | {"one of any type": ()} if shape.any_type else one

    async def _compare(
        self, empty: Ground, full: Ground, types: tuple[str, ...], what: str
    ) -> list[str]:
        beside_none: list[float] = []
        beside_many: list[float] = []
        tries, ratio = 0, math.inf
        while ratio > _LIMIT and tries < _TRIES:
            tries += 1
            for _ in range(_WARM_UP):
                await _in_turn(empty, full, types)
            for _ in range(self.rounds):
                none, many = await _in_turn(empty, full, types)
                beside_none.append(none)
                beside_many.append(many)
            ratio = median(beside_many) / median(beside_none)
        used = set(await full.indexes(_demand(types), now=_now(full)))
        self._ratios[what] = ratio
        if not used <= set(self.expected_indexes[bool(types)]):
            self._astray.append(f"{what}: {_listed(used)}")
        index = _listed(used - {"tasks_pkey", "queues_pkey", "sqlite_autoindex_queues_1"})
        times = milliseconds(beside_none), milliseconds(beside_many)
        return [what, *times, f"{ratio:.2f}", str(tries), index]


@asynccontextmanager
async def _pair(open_ground: OpenGround) -> AsyncIterator[tuple[Ground, Ground]]:
    async with open_ground() as empty, open_ground() as full:
        yield empty, full


async def _in_turn(empty: Ground, full: Ground, types: tuple[str, ...]) -> tuple[float, float]:
    return await _timed_claim(empty, types), await _timed_claim(full, types)


async def _timed_claim(ground: Ground, types: tuple[str, ...]) -> float:
    demand, now = _demand(types), _now(ground)
    began = perf_counter()
    await ground.storage.tasks.claim(demand, now=now)
    return perf_counter() - began


def _demand(types: tuple[str, ...]) -> Demand:
    lease = Lease(
        token=_IDS.lease_token(),
        holder=WorkerId("bench"),
        expires_at=datetime.now(UTC) + HOUR,
    )
    return Demand(
        queue=QueueName(QUEUE),
        types=tuple(TaskType(type_) for type_ in types),
        grants=(lease,),
        max_bytes=MAX_LEASE_PAYLOAD_BYTES,
    )


def _now(ground: Ground) -> datetime:
    return ground.storage.clock.now()


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "nothing"
