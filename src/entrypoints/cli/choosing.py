"""Which tasks a command is about."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import typer

from ...domain.errors import InvalidArgumentError
from ...domain.ids import TaskId
from ...domain.requests import TaskFilter
from ...domain.task import Status
from ...domain.validation import task_id
from ...domain.views import TaskView
from .misuse import MisuseError


@attrs.frozen(kw_only=True)
class Wanted:
    """What tasks must be like; every part that is given narrows."""

    where: TaskFilter
    error: str = ""
    """A part of the last error, by case. No storage looks for it: we read and compare."""

    def covers(self, task: TaskView) -> bool:
        """Whether `task`, which `where` covers, has the error that was asked for."""
        return self.error in (task.last_error or "")


@attrs.frozen(kw_only=True)
class Filters:
    """The options of a command by which tasks are chosen; empty: not given."""

    queue: str
    type: str
    statuses: Sequence[str] | None
    key: str
    error: str

    def wanted(self, *, otherwise: Sequence[Status] = ()) -> Wanted:
        """
        Return what they ask for.

        Args:
            otherwise: the statuses where none is given; empty: all.
        """
        where = TaskFilter(
            queue=self.queue,
            type=self.type,
            statuses=tuple(Status(text) for text in self.statuses or otherwise),
            idempotency_key=self.key,
        )
        return Wanted(where=where, error=self.error)

    def first_given(self) -> str | None:
        """Return the name of an option that was given, or None."""
        options = {
            "--queue": self.queue,
            "--type": self.type,
            "--status": self.statuses,
            "--key": self.key,
            "--error": self.error,
        }
        return next((option for option, value in options.items() if value), None)


@attrs.frozen(kw_only=True)
class Choice:
    """The tasks that a command shall change: those with these ids, or all that are wanted."""

    ids: tuple[str, ...]
    """Each once. Empty: all that are wanted."""

    wanted: Wanted


def choose(
    task_ids: Sequence[str] | None,
    filters: Filters,
    *,
    everything: bool,
    dry_run: bool,
    otherwise: Sequence[Status],
) -> Choice:
    """
    Return the choice that the options of a command make.

    Args:
        otherwise: the statuses that `--all` covers without `--status`; empty: it must be said.

    Raises:
        typer.BadParameter: the options do not go together.
        MisuseError: what is given for an id is none.
    """
    if everything:
        if task_ids:
            raise typer.BadParameter("give ids, or --all, not both", param_hint="--all")
        if not filters.queue:
            raise typer.BadParameter("is needed with --all", param_hint="--queue")
        if not (filters.statuses or otherwise):
            raise typer.BadParameter("is needed with --all", param_hint="--status")
    else:
        if not task_ids:
            raise typer.BadParameter("give ids, or --all with --queue", param_hint="ID...")
        stray = filters.first_given() or ("--dry-run" if dry_run else None)
        if stray:
            raise typer.BadParameter("goes with --all, not with ids", param_hint=stray)
        # One that is none would be refused alone, after others were changed.
        task_ids = [_checked(text) for text in task_ids]
    return Choice(
        ids=tuple(dict.fromkeys(task_ids or ())), wanted=filters.wanted(otherwise=otherwise)
    )


def _checked(text: str) -> TaskId:
    try:
        return task_id(text)
    except InvalidArgumentError:
        raise MisuseError(f"ID: {text!r} is no UUID") from None
