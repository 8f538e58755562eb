"""`leaseq dead ...`: tasks that were given up, whether failed or dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final

import typer

from ...domain.ports import TaskAdmin
from ...domain.requests import TaskFilter
from ...domain.task import Status
from ..connection import run_blocking
from .bulk import Bulk
from .connecting import connected
from .listing import all_ids, print_tasks
from .options import DEFAULT_SERVER, AsJson, Cursor, Limit, Queue, Server, Type, Yes
from .tasks import show

app = typer.Typer(help="See and handle tasks that were given up.", no_args_is_help=True)
app.command("show")(show)

_GIVEN_UP: Final = (Status.FAILED, Status.DEAD)

_Ids = Annotated[
    list[str] | None, typer.Argument(metavar="[ID...]", help="Ids of tasks; or --all.")
]
_All = Annotated[bool, typer.Option("--all", help="All that were given up in --queue.")]
_DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many.")]


@app.command("list")
def list_dead(
    *,
    queue: Queue = "",
    type_: Type = "",
    limit: Limit = 50,
    cursor: Cursor = "",
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """List tasks that were given up, newest first."""
    wanted = TaskFilter(queue=queue, type=type_, statuses=_GIVEN_UP)
    with connected(server) as connection:
        print_tasks(connection.admin, wanted, limit=limit, cursor=cursor, as_json=as_json)


@app.command()
def requeue(
    task_ids: _Ids = None,
    *,
    everything: _All = False,
    queue: Queue = "",
    type_: Type = "",
    dry_run: _DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """Start tasks that were given up anew, with all their attempts."""
    _check(task_ids, everything=everything, queue=queue, type_=type_)
    with connected(server) as connection:
        Bulk(
            verb="requeue",
            done="requeued",
            act=lambda ids: run_blocking(connection.admin.requeue(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(task_ids or _given_up(connection.admin, queue, type_))


@app.command()
def delete(
    task_ids: _Ids = None,
    *,
    everything: _All = False,
    queue: Queue = "",
    type_: Type = "",
    dry_run: _DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """Remove tasks that were given up, and free their keys."""
    _check(task_ids, everything=everything, queue=queue, type_=type_)
    with connected(server) as connection:
        Bulk(
            verb="delete",
            done="deleted",
            act=lambda ids: run_blocking(connection.admin.delete(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(task_ids or _given_up(connection.admin, queue, type_))


def _check(task_ids: Sequence[str] | None, *, everything: bool, queue: str, type_: str) -> None:
    if everything and task_ids:
        raise typer.BadParameter("give ids, or --all, not both", param_hint="--all")
    if not everything and not task_ids:
        raise typer.BadParameter("give ids, or --all with --queue", param_hint="ID...")
    if everything and not queue:
        raise typer.BadParameter("is needed with --all", param_hint="--queue")
    if task_ids and (queue or type_):
        raise typer.BadParameter(
            "goes with --all, not with ids", param_hint="--queue" if queue else "--type"
        )


def _given_up(admin: TaskAdmin, queue: str, type_: str) -> list[str]:
    return all_ids(admin, TaskFilter(queue=queue, type=type_, statuses=_GIVEN_UP))
