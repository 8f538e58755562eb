"""What merging the enqueues of many callers gives, and what it costs a single one."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Final

from calling import latencies, rate
from leaseq.domain.requests import NewTask
from leaseq.entrypoints.connection import open_async
from leaseq_process import ServerProcess
from plan import Plan
from processes import new_schema, program
from report import Report, per_second

CALLERS: Final = 64
_AT_LEAST: Final = 1.3
_LIMITS: Final = {50: 1.1, 95: 1.25}
"""By percentile: how much longer an idle server that merges may take for one call."""

_TRIES: Final = 5
"""Until two servers that do the same differ by no more than that."""

PAYLOAD: Final = json.dumps({"user": 12345, "text": "x" * 120})
_WARM_UP: Final = 50

Call = Callable[[], Awaitable[int]]


async def measure(report: Report, plan: Plan, dsn: str) -> None:
    """Measure a server that merges and one that does not, in turn."""
    async with (
        _server(dsn, "merged") as merged,
        _server(dsn, "unmerged") as unmerged,
        _server(dsn, "unmerged") as control,
    ):
        sides = {"unmerged": unmerged, "merged": merged, "control": control}
        for call in sides.values():
            await latencies(_WARM_UP, call)
        # What decides whether a try counts is the control alone, never what is to be shown.
        for _ in range(_TRIES):
            idle = await _idle(sides, plan.single_calls)
            if all(_noise(idle, percent) <= limit for percent, limit in _LIMITS.items()):
                break
        rates = await _rates(sides, plan)
    gain = median(rates["merged"]) / median(rates["unmerged"])
    report.at_least(_AT_LEAST, gain, f"{CALLERS} callers, merged to unmerged, tasks/s")
    same = median(rates["control"]) / median(rates["unmerged"])
    table = [
        [
            f"{CALLERS} callers, tasks/s",
            *(per_second(median(rates[side])) for side in sides),
            f"{gain:.2f}",
            f"{same:.2f}",
        ]
    ]
    for percent, limit in _LIMITS.items():
        ratio, noise = _ratio(idle, "merged", percent), _noise(idle, percent)
        what = f"1 caller, merged to unmerged, p{percent}"
        if noise <= limit:
            report.at_most(limit, ratio, what)
        else:
            report.undecided(f"{what}: {ratio:.2f}, and {noise:.2f} between two that are the same")
        times = (f"{_percentile(idle[side], percent) * 1000:.2f} ms" for side in sides)
        same = _ratio(idle, "control", percent)
        table.append([f"1 caller, p{percent}", *times, f"{ratio:.2f}", f"{same:.2f}"])
    report.table(
        "Single enqueues through one server, on PostgreSQL (control: another unmerged one)",
        ["", *sides, "merged/unmerged", "control/unmerged"],
        table,
    )


async def _idle(sides: Mapping[str, Call], calls: int) -> dict[str, list[float]]:
    """Return how long calls took, one a turn, so that all meet the same neighbours."""
    idle: dict[str, list[float]] = {side: [] for side in sides}
    order = deque(sides)
    for _ in range(calls):
        for side in order:
            idle[side] += await latencies(1, sides[side])
        order.rotate(1)
    return idle


async def _rates(sides: Mapping[str, Call], plan: Plan) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(plan.windows):
        for side, call in sides.items():
            rates[side].append(await rate(CALLERS, plan.seconds, call))
    return rates


def _noise(idle: Mapping[str, list[float]], percent: int) -> float:
    """Return by what factor two servers that do the same differ."""
    ratio = _ratio(idle, "control", percent)
    return max(ratio, 1 / ratio)


def _ratio(idle: Mapping[str, list[float]], side: str, percent: int) -> float:
    return _percentile(idle[side], percent) / _percentile(idle["unmerged"], percent)


@asynccontextmanager
async def _server(dsn: str, side: str) -> AsyncIterator[Call]:
    with ExitStack() as stack:
        schema = stack.enter_context(new_schema(dsn))
        process = stack.enter_context(program("plain_server.py", dsn, schema, side))
        url = ServerProcess(process, log=Path(os.devnull)).url
        async with AsyncExitStack() as open_ones:
            # A connection for each caller: what shares one is merged before it is sent.
            free = [await open_ones.enter_async_context(open_async(url)) for _ in range(CALLERS)]

            async def enqueue() -> int:
                connection = free.pop()
                try:
                    await connection.queue.enqueue([NewTask(type="send", payload=PAYLOAD)])
                finally:
                    free.append(connection)
                return 1

            yield enqueue


def _percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1]
