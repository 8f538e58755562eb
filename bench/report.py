"""What was measured, as tables, and what was required of it."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from statistics import median

import attrs


@attrs.define
class Report:
    """Prints tables as they come, and keeps the requirements for the end."""

    _verdicts: list[tuple[bool, str]] = attrs.field(factory=list)

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
        self._verdicts.append((ratio <= limit, f"{what}: {ratio:.2f}, at most {limit:g}"))

    def at_least(self, limit: float, ratio: float, what: str) -> None:
        """Require a ratio, both of whose sides were measured in this run."""
        self._verdicts.append((ratio >= limit, f"{what}: {ratio:.2f}, at least {limit:g}"))

    def require(self, what: str, *, holds: bool) -> None:
        """Require something that is true or not."""
        self._verdicts.append((holds, what))

    def concluded(self) -> bool:
        """Print the verdicts, and return whether everything holds."""
        print("\nRequired\n")
        for holds, what in self._verdicts:
            print(f"  {'holds' if holds else 'FAILS'}  {what}")
        return all(holds for holds, _ in self._verdicts)


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
