"""How a world changes without a word to the storage: answers that come or do not, and mishaps."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import attrs

from leaseq.domain.errors import ContendedError
from leaseq.domain.views import Beat, LeasedTask
from protocol.promises import check_world
from protocol.world import AHEAD, SERVERS, Call, Doing, Server, Worker, World

Step = tuple[str, Callable[[], World]]
"""Something that may happen, by its name."""


def told(worker: Worker, answer: Any, now: datetime) -> Worker:
    """Return a worker as it goes on after an answer."""
    idle = Worker(leases=worker.leases)
    match answer:
        case [LeasedTask() as leased]:
            until = now + leased.lease_duration
            return attrs.evolve(idle, doing=Doing.HOLDING, ref=leased.ref, until=until)
        case [Beat(lease_duration=remaining)]:
            return attrs.evolve(worker, doing=Doing.HOLDING, until=now + remaining)
        case [ContendedError()]:
            return _unanswered(worker)
        case _:
            return idle


def _unanswered(worker: Worker) -> Worker:
    """Return a worker as it goes on when no answer comes: a settlement it repeats."""
    match worker.doing:
        case Doing.LEASING:
            return attrs.evolve(worker, doing=Doing.IDLE)
        case Doing.BEATING:
            return attrs.evolve(worker, doing=Doing.HOLDING)
        case Doing.IDLE | Doing.HOLDING | Doing.SETTLING:
            return worker


def mishaps(world: World) -> Iterator[Step]:
    for number, server in enumerate(world.servers):
        if world.allowed.crashes and (
            server.seen or any(call.server == number for call in world.calls)
        ):
            yield f"{SERVERS[number]} dies and is started again", partial(_crash, world, number)
        if server.wrong:
            yield f"the clock of {SERVERS[number]} is set right", partial(_set, world, number)
        elif world.allowed.wrong_clocks:
            ahead = "ahead" if AHEAD[number] > 0 else "late"
            spent = spend(world, "wrong_clocks")
            yield f"the clock of {SERVERS[number]} is {ahead}", partial(_set, spent, number)


def _set(world: World, number: int) -> World:
    server = world.servers[number]
    return _with_server(world, number, attrs.evolve(server, wrong=not server.wrong))


def _crash(world: World, number: int) -> World:
    lost = [call for call in world.calls if call.server == number]
    world = _with_server(spend(world, "crashes"), number, Server())
    world = attrs.evolve(world, calls=tuple(call for call in world.calls if call not in lost))
    for call in lost:
        world = _unheard(world, call.asker)
    return world


def hang_up(world: World, call: Call) -> World:
    calls = list(world.calls)
    calls[calls.index(call)] = attrs.evolve(call, asker="")
    return _unheard(attrs.evolve(spend(world, "hang_ups"), calls=tuple(calls)), call.asker)


def _unheard(world: World, asker: str) -> World:
    if not asker.startswith("worker"):
        return world
    number = int(asker[-1]) - 1
    return with_worker(world, number, _unanswered(world.workers[number]))


def die(world: World, number: int) -> World:
    """Let a new process take a worker's place; what the dead one had asked goes on."""
    name = f"worker {number + 1}"
    calls = tuple(
        attrs.evolve(call, asker="") if call.asker == name else call for call in world.calls
    )
    fresh = Worker(leases=world.workers[number].leases)
    return with_worker(attrs.evolve(spend(world, "deaths"), calls=calls), number, fresh)


def tick(world: World) -> World:
    world = attrs.evolve(spend(world, "ticks"), time=world.time + 1)
    check_world(world)
    return world


def spend(world: World, what: str) -> World:
    left = getattr(world.allowed, what) - 1
    return attrs.evolve(world, allowed=attrs.evolve(world.allowed, **{what: left}))


def with_worker(world: World, number: int, worker: Worker) -> World:
    workers = list(world.workers)
    workers[number] = worker
    return attrs.evolve(world, workers=tuple(workers))


def _with_server(world: World, number: int, server: Server) -> World:
    servers = list(world.servers)
    servers[number] = server
    return attrs.evolve(world, servers=tuple(servers))
