"""How far a long command is, for the person at the terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class ProgressLine:
    """
    A line on the standard error that counts tasks, if that is a terminal.

    It appears with the second step, so a command that needs one does not pay for it, and
    is wiped away at the end.
    """

    def __init__(self, label: str, *, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._steps = 0
        self._line: Progress | None = None
        self._row: TaskID | None = None

    def __enter__(self) -> Self:
        """Return the line, which is not shown yet."""
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Wipe it away."""
        self.hide()

    def advance(self, count: int) -> None:
        """Say that `count` more tasks were dealt with."""
        self._done += count
        self._steps += 1
        if self._steps > 1 and sys.stderr.isatty():
            self._show()

    def hide(self) -> None:
        """Wipe the line away, so that something else can be printed; `advance` brings it back."""
        if self._line is not None:
            self._line.stop()
            self._line = None

    def _show(self) -> None:
        if self._line is None:
            self._line, self._row = _begun(self._label, self._total)
        if self._row is not None:
            self._line.update(self._row, completed=self._done)


def _begun(label: str, total: int | None) -> tuple[Progress, TaskID]:
    # Slow to import, and only long commands need it.
    from rich.console import Console  # noqa: PLC0415
    from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

    count = "{task.completed}" if total is None else "{task.completed} of {task.total}"
    line = Progress(
        TextColumn(f"{label} {count} tasks"),
        BarColumn(),
        console=Console(stderr=True),
        transient=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    line.start()
    return line, line.add_task(label, total=total)
