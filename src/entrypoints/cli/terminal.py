"""
What the commands print: tables on a terminal, tabs otherwise, JSON when asked for.

Text that others wrote (errors, payloads, names) reaches a terminal only with its control
characters spelt out, and is never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from ..printable import printable

_LONG: Final = frozenset({"queue", "type", "last error"})
_FOR_WIDE_TERMINALS: Final = frozenset({"run after"})
_WIDE: Final = 110

_STYLES: Final = {
    "succeeded": "green",
    "failed": "red",
    "dead": "red",
    "leased": "cyan",
    "cancelled": "dim",
}


class UnwritableOutputError(Exception):
    """The standard output takes nothing: its disk is full, or it is closed."""


def on_terminal() -> bool:
    """Return whether a person reads what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


@contextmanager
def writing() -> Iterator[None]:
    """
    Tell a standard output that cannot be written from other trouble.

    A pipe whose reader has left is none: that reader has what it wanted.

    Raises:
        UnwritableOutputError: for what the standard output raised.
    """
    if sys.stdout is None:  # so Python starts where it is closed
        raise UnwritableOutputError("cannot write the output: it is closed")
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        # What is left in its buffer would fail once more, and loudly, when Python ends.
        with suppress(OSError):
            sys.stdout.close()
        why = f"cannot write the output: {error.strerror or error}"
        raise UnwritableOutputError(why) from None


def say(text: str) -> None:
    """Print one line of results, as it is; UnwritableOutputError if that cannot be."""
    with writing():
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()


def put(text: str) -> None:
    """Print a part of a line of results, as it is."""
    with writing():
        sys.stdout.write(text)


def note(text: str) -> None:
    """Print one line beside the results; what has several is joined."""
    sys.stderr.write(f"leaseq: {printable(' '.join(text.split()))}\n")
    sys.stderr.flush()


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[str]], *, header: bool = True
) -> None:
    """Print rows of text under `columns`; a table on a terminal always has its header."""
    if on_terminal():
        _print_rich(columns, rows)
        return
    for row in [columns, *rows] if header else rows:
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
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    console = Console()
    shown = [
        index
        for index, column in enumerate(columns)
        if not rows or (any(row[index] for row in rows) and _fits(column, console.width))
    ]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index in shown:
        # What may be long goes on in the next line; nothing is cut here.
        may_be_long = columns[index] in _LONG
        table.add_column(columns[index], no_wrap=not may_be_long, overflow="fold")
    for row in rows:
        cells = [printable(row[index]) for index in shown]
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in cells))
    with writing():
        console.print(table)


def _fits(column: str, width: int) -> bool:
    return width >= _WIDE or column not in _FOR_WIDE_TERMINALS
