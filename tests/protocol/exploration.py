"""All worlds that can be reached, the nearest first; so a broken promise has a shortest trace."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Final

import attrs

from leaseq.domain.task import Status
from protocol.promises import PromiseBrokenError
from protocol.steps import Rules
from protocol.world import World, essence

_MOST: Final = 60_000


@attrs.frozen(kw_only=True)
class Explored:
    """What an exploration saw."""

    worlds: int
    steps: int
    statuses: frozenset[Status]
    """All that tasks came to."""

    broken: str = ""
    """The promise that a step broke, or nothing."""

    trace: tuple[str, ...] = ()
    """The steps to it: there is no shorter way."""


def explore(start: World, rules: Rules | None = None) -> Explored:
    """Take every step in every world, until nothing new comes or a promise is broken."""
    rules = rules or Rules()
    trail = _Trail()
    trail.arrive(start.key(), None, "")
    waiting = deque([(start.key(), start)])
    judged: set[Hashable] = set()
    statuses: set[Status] = set()
    steps = 0
    while waiting:
        key, world = waiting.popleft()
        statuses |= {row.status for row in world.rows}
        for label, take in rules.steps(world):
            steps += 1
            try:
                after = take()
                stuck = essence_of_storage(after)
                if stuck not in judged:
                    judged.add(stuck)
                    rules.require_an_end(after)
            except PromiseBrokenError as broken:
                trace = (*trail.back_from(key), label)
                return trail.explored(steps, statuses, broken=str(broken), trace=trace)
            reached = after.key()
            if trail.arrive(reached, key, label):
                waiting.append((reached, after))
        assert len(trail) < _MOST, "the bounds are too wide to be explored"
    return trail.explored(steps, statuses)


def essence_of_storage(world: World) -> Hashable:
    """Return what is stored, and what server A has seen of it."""
    return (tuple(map(essence, world.rows)), tuple(map(essence, world.servers[0].seen)))


class _Trail:
    """From where each world was reached first."""

    def __init__(self) -> None:
        self._before: dict[Hashable, tuple[Hashable | None, str]] = {}

    def __len__(self) -> int:
        return len(self._before)

    def arrive(self, key: Hashable, before: Hashable | None, label: str) -> bool:
        """Note how a world was reached, and say whether it is new."""
        known = key in self._before
        self._before.setdefault(key, (before, label))
        return not known

    def back_from(self, key: Hashable) -> list[str]:
        """Return the steps from the start to a world."""
        labels: list[str] = []
        before: Hashable | None = key
        while before is not None:
            before, label = self._before[before]
            labels.append(label)
        return labels[-2::-1]

    def explored(
        self, steps: int, statuses: set[Status], *, broken: str = "", trace: tuple[str, ...] = ()
    ) -> Explored:
        """Return what was seen."""
        return Explored(
            worlds=len(self), steps=steps, statuses=frozenset(statuses), broken=broken, trace=trace
        )
