"""What merging the enqueues of many callers gives, and what it costs a single one."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
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
_AS_FAST: Final = 1.1
_SLOW_AS_FAST: Final = 1.25
"""The slowest of calls vary more, from one run to the next of the same server."""

PAYLOAD: Final = json.dumps({"user": 12345, "text": "x" * 120})
_WARM_UP: Final = 50

Call = Callable[[], Awaitable[int]]


async def measure(report: Report, plan: Plan, dsn: str) -> None:
    """Measure a server that merges and one that does not, in turn."""
    rates: dict[str, list[float]] = {"merged": [], "unmerged": []}
    idle: dict[str, list[float]] = {"merged": [], "unmerged": []}
    async with _server(dsn, "merged") as merged, _server(dsn, "unmerged") as unmerged:
        sides = {"merged": merged, "unmerged": unmerged}
        for call in sides.values():
            await latencies(_WARM_UP, call)
        # One call a turn, so that both meet the same neighbours on the machine.
        for _ in range(plan.single_calls):
            for side, call in sides.items():
                idle[side] += await latencies(1, call)
        for _ in range(plan.windows):
            for side, call in sides.items():
                rates[side].append(await rate(CALLERS, plan.seconds, call))
    gain = median(rates["merged"]) / median(rates["unmerged"])
    half, most = (
        _percentile(idle["merged"], percent) / _percentile(idle["unmerged"], percent)
        for percent in (50, 95)
    )
    report.table(
        "Single enqueues through one server, on PostgreSQL",
        ["", "unmerged", "merged", "ratio"],
        [
            [f"{CALLERS} callers, tasks/s", *_rates(rates), f"{gain:.2f}"],
            ["1 caller, p50", *_milliseconds(idle, 50), f"{half:.2f}"],
            ["1 caller, p95", *_milliseconds(idle, 95), f"{most:.2f}"],
        ],
    )
    report.at_least(_AT_LEAST, gain, f"{CALLERS} callers, merged to unmerged, tasks/s")
    report.at_most(_AS_FAST, half, "1 caller, merged to unmerged, p50")
    report.at_most(_SLOW_AS_FAST, most, "1 caller, merged to unmerged, p95")


@asynccontextmanager
async def _server(dsn: str, side: str) -> AsyncIterator[Call]:
    with ExitStack() as stack:
        schema = stack.enter_context(new_schema(dsn))
        process = stack.enter_context(program("plain_server.py", dsn, schema, side))
        url = ServerProcess(process, log=Path(os.devnull)).url
        async with open_async(url) as connection:

            async def enqueue() -> int:
                await connection.queue.enqueue([NewTask(type="send", payload=PAYLOAD)])
                return 1

            yield enqueue


def _percentile(values: list[float], percent: int) -> float:
    return quantiles(values, n=100)[percent - 1]


def _rates(rates: dict[str, list[float]]) -> list[str]:
    return [per_second(median(rates[side])) for side in ("unmerged", "merged")]


def _milliseconds(idle: dict[str, list[float]], percent: int) -> list[str]:
    return [f"{_percentile(idle[side], percent) * 1000:.2f} ms" for side in ("unmerged", "merged")]
