from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

import attrs
import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.entrypoints.loops import Loop, Supervisor
from leaseq.testing import SECOND, FixedJitter


@attrs.define
class Sleeps:
    """Sleeps that end when the test says so."""

    _asked: asyncio.Queue[tuple[timedelta, asyncio.Event]] = attrs.field(factory=asyncio.Queue)
    _current: asyncio.Event | None = None

    async def __call__(self, span: timedelta) -> None:
        woken = asyncio.Event()
        self._asked.put_nowait((span, woken))
        await woken.wait()

    async def next(self) -> timedelta:
        """End the sleep seen before, and return how long the next one is to be."""
        self.end()
        span, self._current = await self._asked.get()
        return span

    def end(self) -> None:
        """End the sleep seen before."""
        if self._current is not None:
            self._current.set()


@attrs.define
class Passes:
    """A loop's passes, each of which ends as the test wants."""

    outcomes: list[BaseException | None]
    count: int = 0

    async def __call__(self) -> None:
        self.count += 1
        outcome = self.outcomes.pop(0) if self.outcomes else None
        if outcome is not None:
            raise outcome


@attrs.define
class Stage:
    supervisor: Supervisor
    sleeps: Sleeps
    seconds: list[float]

    async def next_wait(self) -> timedelta:
        return await self.sleeps.next()


@asynccontextmanager
async def running(
    run_pass: Callable[[], Awaitable[None]],
    *,
    jitter: float = 0.0,
    pass_limit: timedelta = 30 * SECOND,
    first_after: timedelta = timedelta(0),
) -> AsyncIterator[Stage]:
    loop = Loop(
        name="reaper",
        run_pass=run_pass,
        interval=10 * SECOND,
        first_after=first_after,
        pass_limit=pass_limit,
        longest_backoff=5 * SECOND,
        stale_after=30 * SECOND,
    )
    sleeps, seconds = Sleeps(), [0.0]
    supervisor = Supervisor(
        [loop], jitter=FixedJitter(jitter), sleep=sleeps, monotonic=lambda: seconds[0]
    )
    async with supervisor.running():
        yield Stage(supervisor, sleeps, seconds)


async def test_a_loop_passes_again_and_again() -> None:
    passes = Passes([])

    async with running(passes) as stage:
        waits = [await stage.next_wait() for _ in range(4)]

    assert waits == [timedelta(0), 10 * SECOND, 10 * SECOND, 10 * SECOND]
    assert passes.count == 3


async def test_a_first_pass_that_shall_wait_does_so() -> None:
    passes = Passes([])

    async with running(passes, first_after=60 * SECOND, jitter=0.5) as stage:
        first = await stage.next_wait()

    assert first == 90 * SECOND
    assert passes.count == 0


async def test_luck_only_shortens_the_interval() -> None:
    async with running(Passes([]), jitter=0.5) as stage:
        await stage.next_wait()

        assert await stage.next_wait() == 9 * SECOND


async def test_a_pass_that_fails_is_repeated_with_capped_backoff() -> None:
    away = [StorageUnavailableError("away") for _ in range(5)]

    async with running(Passes([*away, None])) as stage:
        await stage.next_wait()
        waits = [await stage.next_wait() for _ in range(6)]

    assert waits == [SECOND, 2 * SECOND, 4 * SECOND, 5 * SECOND, 5 * SECOND, 10 * SECOND]


async def test_luck_halves_a_backoff_at_most() -> None:
    async with running(Passes([StorageUnavailableError("away")]), jitter=0.5) as stage:
        await stage.next_wait()

        assert await stage.next_wait() == 0.75 * SECOND


@pytest.mark.parametrize(
    "error",
    [
        StorageUnavailableError("away"),
        RuntimeError("bug"),
        asyncio.CancelledError(),
        TimeoutError(),
    ],
    ids=["storage away", "bug", "a future cancelled below", "timeout below"],
)
async def test_no_failed_pass_stops_a_loop(
    error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    passes = Passes([error])

    async with running(passes) as stage:
        for _ in range(3):
            await stage.next_wait()
        unfit = stage.supervisor.unfit()

    assert passes.count == 2
    assert unfit is None
    [record] = caplog.records
    assert record.levelno >= logging.WARNING
    assert vars(record)["loop"] == "reaper"


async def test_a_pass_that_takes_too_long_has_failed(caplog: pytest.LogCaptureFixture) -> None:
    async def hang() -> None:
        await asyncio.Event().wait()

    async with running(hang, pass_limit=timedelta(0)) as stage:
        await stage.next_wait()
        wait = await stage.next_wait()

    assert wait == SECOND
    assert "too long" in caplog.text


async def test_ages_count_from_the_last_good_pass() -> None:
    away = [StorageUnavailableError("away")] * 2

    async with running(Passes([None, *away])) as stage:
        await stage.next_wait()
        for _ in range(3):
            stage.seconds[0] += 7
            await stage.next_wait()
        ages = stage.supervisor.ages()

    assert ages == {"reaper": 14 * SECOND}


async def test_a_process_is_unfit_without_a_good_pass_for_long() -> None:
    async with running(Passes([])) as stage:
        await stage.next_wait()
        await stage.next_wait()
        stage.seconds[0] = 30.0
        fit = stage.supervisor.unfit()
        stage.seconds[0] = 30.5
        unfit = stage.supervisor.unfit()

    assert fit is None
    assert unfit == "the reaper had its last good pass 30 s ago"


async def test_a_process_is_unfit_when_a_loop_died(caplog: pytest.LogCaptureFixture) -> None:
    class PowerCutError(BaseException):
        pass

    async with running(Passes([PowerCutError()])) as stage:
        await stage.next_wait()
        stage.sleeps.end()
        while stage.supervisor.unfit() is None:  # noqa: ASYNC110  nobody is told of it
            await asyncio.sleep(0)
        unfit = stage.supervisor.unfit()

    assert unfit == "the reaper does not run"
    assert "loop died" in caplog.text


async def test_leaving_ends_the_loops_even_in_the_middle_of_a_pass() -> None:
    begun = asyncio.Event()
    ended = asyncio.Event()

    async def hang() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with running(hang) as stage:
        await stage.next_wait()
        stage.sleeps.end()
        await begun.wait()

    assert ended.is_set()
