"""`leaseq dead ...`: tasks that were given up, whether failed or dead."""

from __future__ import annotations

import typer

from ..connection import run_blocking
from .bulk import Bulk
from .choosing import Filters, choose
from .connecting import connected
from .listing import print_tasks, stretch
from .options import (
    DEFAULT_SERVER,
    GIVEN_UP,
    All,
    AsJson,
    Cursor,
    DryRun,
    ErrorText,
    Key,
    Limit,
    ListAll,
    Queue,
    Server,
    StatusOfDead,
    TaskIds,
    Type,
    Yes,
)
from .tasks import show

app = typer.Typer(
    help="See and handle dead letters: tasks that were given up.", no_args_is_help=True
)


@app.command("list")
def list_dead(  # noqa: PLR0913  one for each option
    *,
    queue: Queue = "",
    type_: Type = "",
    statuses: StatusOfDead = None,
    key: Key = "",
    error: ErrorText = "",
    limit: Limit = None,
    cursor: Cursor = "",
    everything: ListAll = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """List tasks that were given up, newest first."""
    part = stretch(limit=limit, cursor=cursor, everything=everything)
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    with connected(server) as connection:
        print_tasks(connection.admin, filters.wanted(otherwise=GIVEN_UP), part, as_json=as_json)


app.command("show")(show)


@app.command()
def requeue(  # noqa: PLR0913  one for each option
    task_ids: TaskIds = None,
    *,
    everything: All = False,
    queue: Queue = "",
    type_: Type = "",
    statuses: StatusOfDead = None,
    key: Key = "",
    error: ErrorText = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """Start tasks that were given up anew, with all their attempts."""
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    choice = choose(task_ids, filters, everything=everything, dry_run=dry_run, otherwise=GIVEN_UP)
    with connected(server) as connection:
        Bulk(
            verb="requeue",
            done="requeued",
            act=lambda ids: run_blocking(connection.admin.requeue(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(choice, connection.admin)


@app.command()
def delete(  # noqa: PLR0913  one for each option
    task_ids: TaskIds = None,
    *,
    everything: All = False,
    queue: Queue = "",
    type_: Type = "",
    statuses: StatusOfDead = None,
    key: Key = "",
    error: ErrorText = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """
    Remove tasks that were given up, and free their keys.

    By its id any task goes that has ended.
    """
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    choice = choose(task_ids, filters, everything=everything, dry_run=dry_run, otherwise=GIVEN_UP)
    with connected(server) as connection:
        Bulk(
            verb="delete",
            done="deleted",
            act=lambda ids: run_blocking(connection.admin.delete(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(choice, connection.admin)
