"""One command for many tasks: how many first, then in batches, with what became of each."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Final

import attrs
import typer

from ...domain.errors import TaskQueueError
from ...domain.ports import TaskAdmin
from .choosing import Choice
from .listing import all_ids
from .progress import ProgressLine
from .terminal import note, say

ASK_ABOVE: Final = 20
"""More tasks than this are changed only after a yes."""

_BATCH: Final = 500

Act = Callable[[Sequence[str]], list[TaskQueueError | None]]


@attrs.define
class _Tally:
    """What became of the tasks so far."""

    matched: int
    done: int = 0
    refused: list[tuple[str, TaskQueueError]] = attrs.field(factory=list)


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

    def carry_out(self, choice: Choice, admin: TaskAdmin) -> None:
        """
        Do it to the tasks that were chosen, or say how many they are.

        What was done is told also where it ends early.

        Raises:
            TaskQueueError: a call failed; tasks of its batch may have been changed.
            typer.Exit: with 1, after some tasks were refused.
            typer.BadParameter: nobody is there to say yes.
        """
        ids = choice.ids or all_ids(admin, choice.wanted)
        tally = _Tally(len(ids))
        if not self.dry_run:
            self._confirm(len(ids))
            try:
                self._act_on(ids, tally)
            except (TaskQueueError, KeyboardInterrupt):
                self._report(tally, cut_short=True)
                raise
        self._report(tally, cut_short=False)
        if tally.refused:
            raise typer.Exit(1)

    def _confirm(self, count: int) -> None:
        if self.yes or count <= ASK_ABOVE:
            return
        if not sys.stdin.isatty():
            why = f"{self.verb} {_tasks(count)} without asking?"
            raise typer.BadParameter(why, param_hint="--yes")
        typer.confirm(f"{self.verb} {_tasks(count)}?", abort=True, err=True)

    def _act_on(self, ids: Sequence[str], tally: _Tally) -> None:
        with ProgressLine(self.done, total=len(ids)) as line:
            for start in range(0, len(ids), _BATCH):
                batch = ids[start : start + _BATCH]
                outcomes = self.act(batch)
                refused = [
                    (task_id, outcome)
                    for task_id, outcome in zip(batch, outcomes, strict=True)
                    if outcome is not None
                ]
                tally.refused += refused
                tally.done += len(batch) - len(refused)
                line.advance(len(batch))

    def _report(self, tally: _Tally, *, cut_short: bool) -> None:
        if self.as_json:
            refused = [
                {"id": task_id, "error": type(error).__name__, "message": str(error)}
                for task_id, error in tally.refused
            ]
            say(json.dumps({"matched": tally.matched, "done": tally.done, "refused": refused}))
            return
        for _, error in tally.refused:
            note(str(error))
        if self.dry_run:
            say(f"would {self.verb} {_tasks(tally.matched)}")
        elif cut_short:
            say(f"{self.done} {tally.done} of {_tasks(tally.matched)}")
        else:
            say(f"{self.done} {_tasks(tally.done)}")


def _tasks(count: int) -> str:
    return "1 task" if count == 1 else f"{count} tasks"
