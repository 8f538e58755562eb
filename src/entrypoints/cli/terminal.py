"""
What the commands print: tables on a terminal, tabs otherwise, JSON when asked for.

Text that others wrote (errors, payloads, names) reaches a terminal only with its control
characters spelt out, and is never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from ..printable import printable

_STYLES: Final = {
    "succeeded": "green",
    "failed": "red",
    "dead": "red",
    "leased": "cyan",
    "cancelled": "dim",
}


def on_terminal() -> bool:
    """Return whether a person reads what is printed."""
    return sys.stdout.isatty()


def say(text: str) -> None:
    """Print one line of results, as it is."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Print one line beside the results; what has several is joined."""
    sys.stderr.write(f"leaseq: {printable(' '.join(text.split()))}\n")
    sys.stderr.flush()


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text under `columns`."""
    if on_terminal():
        _print_rich(columns, rows)
        return
    for row in [columns, *rows]:
        say("\t".join(printable(cell) for cell in row))


def print_fields(fields: Sequence[tuple[str, str]]) -> None:
    """Print names and values; the lines of a long value are indented below its name."""
    width = max(len(name) for name, _ in fields)
    for name, value in fields:
        first, *others = value.splitlines() or [""]
        say(f"{name:<{width}}  {printable(first)}".rstrip())
        for line in others:
            say(f"{'':<{width}}  {printable(line)}".rstrip())


def _print_rich(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    # Half of the command's start would be spent on rich, also where nothing is to be drawn.
    from rich.box import SIMPLE_HEAD  # noqa: PLC0415
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        # Ids and numbers are there to be copied; errors may be cut.
        table.add_column(
            column, no_wrap=True, overflow="ellipsis", min_width=36 if column == "id" else None
        )
    for row in rows:
        table.add_row(*(Text(printable(cell), style=_STYLES.get(cell, "")) for cell in row))
    Console().print(table)
