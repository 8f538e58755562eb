"""What was measured, as tables, and what was required of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from enum import StrEnum
from statistics import median

import attrs


class Verdict(StrEnum):
    """What came of a requirement."""

    HOLDS = "holds"
    FAILS = "FAILS"
    UNDECIDED = "UNDECIDED"
    """The machine was too noisy to tell: neither good nor bad news."""


@attrs.define
class Report:
    """Prints tables as they come, and keeps the requirements for the end."""

    _verdicts: list[tuple[Verdict, str]] = attrs.field(factory=list)

    def table(self, title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print rows of cells: the first column to the left, the others to the right."""
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        print(f"\n{title}\n")
        for cells in (head, ["-" * width for width in widths], *rows):
            first, *others = zip(cells, widths, strict=True)
            line = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
            print("  " + "  ".join(line), flush=True)

    def at_most(self, limit: float, ratio: float, what: str) -> None:
        """Require a ratio, both of whose sides were measured in this run."""
        self.require(f"{what}: {ratio:.2f}, at most {limit:g}", holds=ratio <= limit)

    def at_least(self, limit: float, ratio: float, what: str) -> None:
        """Require a ratio, both of whose sides were measured in this run."""
        self.require(f"{what}: {ratio:.2f}, at least {limit:g}", holds=ratio >= limit)

    def require(self, what: str, *, holds: bool) -> None:
        """Require something that is true or not."""
        self._verdicts.append((Verdict.HOLDS if holds else Verdict.FAILS, what))

    def undecided(self, what: str) -> None:
        """Say that a requirement could not be checked."""
        self._verdicts.append((Verdict.UNDECIDED, what))

    def concluded(self) -> set[Verdict]:
        """Print the verdicts, and return which of the three there are."""
        print("\nRequired\n")
        for verdict, what in self._verdicts:
            print(f"  {verdict}  {what}")
        return {verdict for verdict, _ in self._verdicts}


def machine() -> str:
    """Return what kind of machine this is; numbers of two machines cannot be compared."""
    load = os.getloadavg()[0]
    return (
        f"{os.cpu_count()} cores, {platform.system()} {platform.machine()},"
        f" Python {platform.python_version()}; load before: {load:.1f}"
    )


def milliseconds(seconds: Sequence[float]) -> str:
    """Return the median, to be read."""
    return f"{median(seconds) * 1000:.2f} ms"


def per_second(rate: float) -> str:
    """Return a rate to two significant digits: more would not come out again."""
    return f"{float(f'{rate:.2g}'):,.0f}"
