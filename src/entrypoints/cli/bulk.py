"""One command for many tasks: how many first, then in batches, with what became of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import attrs
import typer

from ...domain.errors import TaskQueueError
from .terminal import note, say

ASK_ABOVE: Final = 20
"""More tasks than this are changed only after a yes."""

_BATCH: Final = 500

Act = Callable[[Sequence[str]], list[TaskQueueError | None]]


@attrs.frozen(kw_only=True)
class Bulk:
    """What is to be done to many tasks."""

    verb: str
    """As in `requeue 7 tasks`."""

    done: str
    """As in `requeued 7 tasks`."""

    act: Act
    dry_run: bool = False
    yes: bool = False
    as_json: bool = False

    def carry_out(self, ids: Sequence[str]) -> None:
        """
        Do it to the tasks with these ids, or say what would be done.

        Raises:
            typer.Exit: with 1, after some tasks were refused.
            typer.BadParameter: nobody is there to say yes.
        """
        refused: list[tuple[str, TaskQueueError]] = []
        if not self.dry_run:
            self._confirm(len(ids))
            refused = list(self._refusals(ids))
        self._report(len(ids), refused)
        if refused:
            raise typer.Exit(1)

    def _confirm(self, count: int) -> None:
        if self.yes or count <= ASK_ABOVE:
            return
        if not sys.stdin.isatty():
            why = f"{self.verb} {_tasks(count)} without asking?"
            raise typer.BadParameter(why, param_hint="--yes")
        typer.confirm(f"{self.verb} {_tasks(count)}?", abort=True, err=True)

    def _refusals(self, ids: Sequence[str]) -> Iterator[tuple[str, TaskQueueError]]:
        for start in range(0, len(ids), _BATCH):
            batch = ids[start : start + _BATCH]
            for task_id, outcome in zip(batch, self.act(batch), strict=True):
                if outcome is not None:
                    yield task_id, outcome
            if len(ids) > _BATCH and sys.stderr.isatty():
                note(f"{self.done} {start + len(batch)} of {len(ids)}")

    def _report(self, count: int, refused: Sequence[tuple[str, TaskQueueError]]) -> None:
        done = 0 if self.dry_run else count - len(refused)
        if self.as_json:
            documents = [
                {"id": task_id, "error": type(error).__name__, "message": str(error)}
                for task_id, error in refused
            ]
            say(json.dumps({"matched": count, "done": done, "refused": documents}))
            return
        for _, error in refused:
            note(str(error))
        say(f"would {self.verb} {_tasks(count)}" if self.dry_run else f"{self.done} {_tasks(done)}")


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
