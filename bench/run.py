"""
Measures leaseq, and fails where it is not as it has to be.

    make bench              everything, some minutes
    make bench ARGS=--quick one minute: a tenth of the tasks, short runs
    make bench ARGS="--only claims"

Numbers depend on the machine and on what else it does. What is required are ratios of two
things that were measured in turn.

Exit codes: 0 everything holds, 1 something does not, 2 nothing fails but something could not
be decided on a machine as busy as this.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from functools import partial
from pathlib import Path
from time import perf_counter

import claims_on_postgres
import claims_on_sqlite
import merging
import throughput
from claims import Claims, shapes
from plan import FULL, QUICK, Plan
from postgres_provider.sources import running_postgres
from report import Report, Verdict, machine

PARTS = ("claims", "merging", "throughput")


def main() -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(prog="make bench", description=__doc__.split("\n\n")[0])
    parser.add_argument("--quick", action="store_true", help="one minute in all")
    parser.add_argument("--only", choices=PARTS, action="append", help="leave out the others")
    arguments = parser.parse_args()
    plan = QUICK if arguments.quick else FULL
    began = perf_counter()
    print(machine())
    report = Report()
    with (
        running_postgres() as server,
        tempfile.TemporaryDirectory(prefix="leaseq-bench-") as folder,
    ):
        print(f"PostgreSQL: {server.origin}")
        work = _measure(report, plan, server.url, Path(folder), arguments.only or PARTS)
        asyncio.run(work)
    verdicts = report.concluded()
    print(f"\n{perf_counter() - began:.0f} s in all; load after: {machine().rpartition(' ')[2]}")
    if Verdict.FAILS in verdicts:
        return 1
    return 2 if Verdict.UNDECIDED in verdicts else 0


async def _measure(
    report: Report, plan: Plan, dsn: str, folder: Path, parts: tuple[str, ...] | list[str]
) -> None:
    if "claims" in parts:
        await _measure_claims(report, plan, dsn, folder)
    if "merging" in parts:
        await merging.measure(report, plan, dsn)
    if "throughput" in parts:
        await throughput.measure(report, plan, dsn, folder)


async def _measure_claims(report: Report, plan: Plan, dsn: str, folder: Path) -> None:
    storages = [
        Claims(
            database="PostgreSQL",
            open_ground=partial(claims_on_postgres.postgres_ground, dsn),
            expected_indexes=claims_on_postgres.INDEXES,
            rounds=plan.claim_rounds,
        ),
        Claims(
            database="SQLite",
            open_ground=partial(claims_on_sqlite.sqlite_ground, folder),
            expected_indexes=claims_on_sqlite.INDEXES,
            rounds=plan.claim_rounds,
        ),
    ]
    head = ["A claim beside what it does not want", "empty", "full", "ratio", "tries", "index"]
    for claims in storages:
        rows = [row for shape in shapes(plan.scale) for row in await claims.measure(shape)]
        report.table(f"The cost of a claim on {claims.database} (medians)", head, rows)
        claims.conclude(report)


if __name__ == "__main__":
    sys.exit(main())
