"""Which tasks a command is about."""

from __future__ import annotations

from collections.abc import Sequence

import attrs
import typer

from ...domain.requests import TaskFilter
from ...domain.task import Status
from ...domain.views import TaskView


@attrs.frozen(kw_only=True)
class Wanted:
    """What tasks must be like; every part that is given narrows."""

    where: TaskFilter
    error: str = ""
    """A part of the last error, by case. No storage looks for it: we read and compare."""

    def covers(self, task: TaskView) -> bool:
        """Whether `task`, which `where` covers, has the error that was asked for."""
        return self.error in (task.last_error or "")


def wanted(
    *,
    queue: str,
    type_: str,
    key: str,
    statuses: Sequence[str],
    error: str = "",
) -> Wanted:
    """Return what the options of a command ask for."""
    where = TaskFilter(
        queue=queue,
        type=type_,
        statuses=tuple(Status(text) for text in statuses),
        idempotency_key=key,
    )
    return Wanted(where=where, error=error)


@attrs.frozen(kw_only=True)
class Choice:
    """The tasks that a command shall change: those with these ids, or all that are wanted."""

    ids: tuple[str, ...]
    """Each once. Empty: all that are wanted."""

    wanted: Wanted


def choose(  # noqa: PLR0913  one for each option
    task_ids: Sequence[str] | None,
    *,
    everything: bool,
    dry_run: bool,
    queue: str,
    type_: str,
    key: str,
    statuses: Sequence[str] | None,
    error: str,
    default_statuses: Sequence[Status],
) -> Choice:
    """
    Return the choice that the options of a command make.

    Args:
        default_statuses: what `--all` covers without `--status`; empty: it must be said.

    Raises:
        typer.BadParameter: they do not go together.
    """
    narrowing = {
        "--queue": queue,
        "--type": type_,
        "--key": key,
        "--status": statuses,
        "--error": error,
        "--dry-run": dry_run,
    }
    if everything:
        if task_ids:
            raise typer.BadParameter("give ids, or --all, not both", param_hint="--all")
        if not queue:
            raise typer.BadParameter("is needed with --all", param_hint="--queue")
        if not (statuses or default_statuses):
            raise typer.BadParameter("is needed with --all", param_hint="--status")
    else:
        if not task_ids:
            raise typer.BadParameter("give ids, or --all with --queue", param_hint="ID...")
        for option, value in narrowing.items():
            if value:
                raise typer.BadParameter("goes with --all, not with ids", param_hint=option)
    return Choice(
        ids=tuple(dict.fromkeys(task_ids or ())),
        wanted=wanted(
            queue=queue,
            type_=type_,
            key=key,
            statuses=statuses or default_statuses,
            error=error,
        ),
    )
