"""`leaseq tasks ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...adapters.task_json import task_json
from ..connection import run_blocking
from .bulk import Bulk
from .choosing import Filters, choose
from .connecting import connected
from .listing import print_tasks, stretch
from .options import (
    DEFAULT_SERVER,
    NOT_ENDED,
    All,
    AnyStatus,
    AsJson,
    Cursor,
    DryRun,
    ErrorText,
    Key,
    Limit,
    ListAll,
    Queue,
    Server,
    StatusToCancel,
    StatusToRequeue,
    TaskIds,
    Type,
    Yes,
)
from .task_text import task_fields
from .terminal import print_fields, say

app = typer.Typer(help="See tasks, cancel them, requeue them.", no_args_is_help=True)

_TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's id.")]


@app.command("list")
def list_tasks(  # noqa: PLR0913  one for each option
    *,
    queue: Queue = "",
    type_: Type = "",
    statuses: AnyStatus = None,
    key: Key = "",
    error: ErrorText = "",
    limit: Limit = None,
    cursor: Cursor = "",
    everything: ListAll = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """List tasks, newest first."""
    part = stretch(limit=limit, cursor=cursor, everything=everything)
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    with connected(server) as connection:
        print_tasks(connection.admin, filters.wanted(), part, as_json=as_json)


@app.command()
def show(task_id: _TaskId, *, server: Server = DEFAULT_SERVER, as_json: AsJson = False) -> None:
    """Show everything about a task: payload, errors, result."""
    with connected(server) as connection:
        task = run_blocking(connection.queue.get(task_id))
    if as_json:
        say(task_json(task))
    else:
        print_fields(task_fields(task))


@app.command()
def cancel(  # noqa: PLR0913  one for each option
    task_ids: TaskIds = None,
    *,
    everything: All = False,
    queue: Queue = "",
    type_: Type = "",
    statuses: StatusToCancel = None,
    key: Key = "",
    error: ErrorText = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """
    Cancel tasks that have not ended.

    A leased task is asked to stop: its worker learns it by its next heartbeat.
    """
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    choice = choose(task_ids, filters, everything=everything, dry_run=dry_run, otherwise=NOT_ENDED)
    with connected(server) as connection:
        Bulk(
            verb="cancel",
            done="cancelled",
            act=lambda ids: run_blocking(connection.admin.cancel(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(choice, connection.admin)


@app.command()
def requeue(  # noqa: PLR0913  one for each option
    task_ids: TaskIds = None,
    *,
    everything: All = False,
    queue: Queue = "",
    type_: Type = "",
    statuses: StatusToRequeue = None,
    key: Key = "",
    error: ErrorText = "",
    dry_run: DryRun = False,
    yes: Yes = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """
    Start failed, dead or cancelled tasks anew, with all their attempts.

    With --all, --status has to say which of them.
    """
    filters = Filters(queue=queue, type=type_, statuses=statuses, key=key, error=error)
    choice = choose(task_ids, filters, everything=everything, dry_run=dry_run, otherwise=())
    with connected(server) as connection:
        Bulk(
            verb="requeue",
            done="requeued",
            act=lambda ids: run_blocking(connection.admin.requeue(ids)),
            dry_run=dry_run,
            yes=yes,
            as_json=as_json,
        ).carry_out(choice, connection.admin)
