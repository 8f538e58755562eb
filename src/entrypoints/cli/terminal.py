"""
What the commands print: tables on a terminal, tabs otherwise, JSON when asked for.

Text that others wrote (errors, payloads, names) reaches a terminal only with its control
characters spelt out, and is never read as markup.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TextIO

from ..printable import printable

_LONG: Final = frozenset({"queue", "type", "last error"})
_FOR_WIDE_TERMINALS: Final = frozenset({"run after"})
_WIDE: Final = 110

_STYLES: Final[Mapping[str, Mapping[str, str]]] = {
    "status": {
        "succeeded": "green",
        "failed": "red",
        "dead": "red",
        "leased": "cyan",
        "cancelled": "dim",
    },
    "state": {"paused": "yellow"},
}
"""Of cells, by their column and then by what they say."""


class UnwritableOutputError(Exception):
    """The standard output takes nothing: its disk is full, or it is closed."""


def on_terminal() -> bool:
    """Return whether a person reads what is printed."""
    return sys.stdout is not None and sys.stdout.isatty()


class Output:
    """
    The standard output, whose faults are told from other trouble.

    A pipe whose reader has left is no fault: that reader has what it wanted.

    Raises:
        UnwritableOutputError: what is written cannot be.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._fault = ""

    def __getattr__(self, name: str) -> Any:
        """Return what the stream has."""
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write `text`."""
        with self._told():
            return self._stream.write(text)

    def flush(self) -> None:
        """Write what is left in the buffer."""
        with self._told():
            self._stream.flush()

    @contextmanager
    def _told(self) -> Iterator[None]:
        # click tries a stream out before it uses it, and keeps to itself how that went.
        if self._fault:
            raise UnwritableOutputError(self._fault)
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            # What is left in its buffer would fail once more, and loudly, when Python ends.
            with suppress(OSError):
                self._stream.close()
            self._fault = f"cannot write the output: {error.strerror or error}"
            raise UnwritableOutputError(self._fault) from None


def say(text: str) -> None:
    """Print one line of results, as it is; UnwritableOutputError if that cannot be."""
    put(f"{text}\n")
    sys.stdout.flush()


def put(text: str) -> None:
    """Print a part of a line of results, as it is; UnwritableOutputError if that cannot be."""
    if sys.stdout is None:  # so Python starts where it is closed
        raise UnwritableOutputError("cannot write the output: it is closed")
    sys.stdout.write(text)


def note(text: str) -> None:
    """Print one line beside the results, if there is where; what has several is joined."""
    if sys.stderr is None or sys.stderr.closed:  # None: so Python starts where it is closed
        return
    try:
        sys.stderr.write(f"leaseq: {printable(' '.join(text.split()))}\n")
        sys.stderr.flush()
    except OSError:
        # What is left in its buffer would fail once more, and change the exit code.
        with suppress(OSError):
            sys.stderr.close()


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
    styles = [_STYLES.get(column, {}) for column in columns]
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for index in shown:
        # What may be long goes on in the next line; nothing is cut here.
        may_be_long = columns[index] in _LONG
        table.add_column(columns[index], no_wrap=not may_be_long, overflow="fold")
    for row in rows:
        cells = [(printable(row[index]), styles[index].get(row[index], "")) for index in shown]
        table.add_row(*(Text(cell, style=style) for cell, style in cells))
    console.print(table)


def _fits(column: str, width: int) -> bool:
    return width >= _WIDE or column not in _FOR_WIDE_TERMINALS
