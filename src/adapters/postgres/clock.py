"""
The database's clock, read without asking the database.

The difference between its clock and a local one that never stops is measured now and then, and
added. The arithmetic is in `Offset` and `best`, on whole microseconds; only `PostgresClock`
reads a clock.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

import attrs

from ..clock import steady_ns

PROBES: Final = 5
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

_DRIFT_PER_MILLION: Final = 500
"""NTP slews a clock by at most this, and crystals stray by less."""

_STANDS_STILL_FOR: Final = timedelta(seconds=1) // _MICROSECOND


@attrs.frozen(kw_only=True)
class Probe:
    """One look at the database's clock: when we asked, what it said, when we knew."""

    asked_at: int
    """Local microseconds; likewise `answered_at`."""

    answered_at: int
    said: datetime
    server: datetime
    """When the server was started, which tells one server from another."""


@attrs.frozen(kw_only=True)
class Offset:
    """What to add to the local clock, all in microseconds."""

    value: int
    error: int
    """Half the round trip: the truth lies within, as of `measured_at`."""

    measured_at: int
    server: datetime

    def moment(self, local: int) -> int:
        """Return the database's time since 1970."""
        return local + self.value

    def uncertainty(self, local: int) -> int:
        """Return how wrong `moment` may be: the error, and how far the clocks may have strayed."""
        return self.error + abs(local - self.measured_at) * _DRIFT_PER_MILLION // 1_000_000

    def kept(self, newer: Offset) -> Offset:
        """
        Return what to go by after a newer measurement.

        As long as the newer one does not contradict it the old value stays, so that the clock
        does not jump to and fro by the luck of round trips. Another server's always counts.
        """
        agrees = abs(newer.value - self.value) <= newer.error
        if newer.server != self.server or not agrees:
            return newer
        # The truth is within `error` of the newer value, hence within this of the old one.
        return attrs.evolve(
            newer, value=self.value, error=newer.error + abs(newer.value - self.value)
        )


def best(probes: Iterable[Probe]) -> Offset:
    """Return what the probe with the shortest round trip tells."""
    probe = min(probes, key=lambda each: each.answered_at - each.asked_at)
    said = (probe.said - _EPOCH) // _MICROSECOND
    round_trip = probe.answered_at - probe.asked_at
    return Offset(
        value=said - (probe.asked_at + probe.answered_at) // 2,
        # Half rounded up, and one for what was cut off of each reading.
        error=(round_trip + 1) // 2 + 1,
        measured_at=probe.answered_at,
        server=probe.server,
    )


Ask = Callable[[], Awaitable[tuple[datetime, datetime]]]
"""Asks the database for its time and for when its server was started."""


class PostgresClock:
    """
    A `Clock` that all who share a database agree on, whatever their own clocks say.

    It goes back only where the database's clock did, or where another server with a slower
    clock took over: what is less than a second is waited for, standing still; more
    than that is followed at once, as agreeing with others matters more.
    """

    def __init__(self, local: Callable[[], int] | None = None) -> None:
        self._local = local or _local
        self._offset: Offset | None = None
        self._latest = 0

    def now(self) -> datetime:
        """Return the database's time in UTC. To be measured once before."""
        moment = self._known().moment(self._local())
        self._latest = moment + self._stands_still_for(moment)
        return _EPOCH + timedelta(microseconds=self._latest)

    def uncertainty(self) -> timedelta:
        """Return how wrong `now` may be: half a round trip, growing until the next measurement."""
        local = self._local()
        offset = self._known()
        ahead = self._stands_still_for(offset.moment(local))
        return timedelta(microseconds=offset.uncertainty(local) + ahead)

    async def measure(self, ask: Ask) -> None:
        """Measure the difference by the best of five probes."""
        measured = best([await self._probe(ask) for _ in range(PROBES)])
        self._offset = self._offset.kept(measured) if self._offset else measured

    async def greet(self, ask: Ask) -> None:
        """Measure where one question tells that the server is another than before."""
        probe = await self._probe(ask)
        if self._offset is None or probe.server != self._offset.server:
            await self.measure(ask)

    def _stands_still_for(self, moment: int) -> int:
        behind = self._latest - moment
        return behind if 0 < behind <= _STANDS_STILL_FOR else 0

    async def _probe(self, ask: Ask) -> Probe:
        asked_at = self._local()
        said, server = await ask()
        return Probe(asked_at=asked_at, answered_at=self._local(), said=said, server=server)

    def _known(self) -> Offset:
        if self._offset is None:
            raise AssertionError("the clock was never measured")
        return self._offset


def _local() -> int:
    return steady_ns() // 1000
