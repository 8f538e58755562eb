"""`leaseq tasks ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from ...domain.requests import TaskFilter
from ...domain.task import Status
from ..connection import run_blocking
from .bulk import Bulk
from .connecting import connected
from .listing import print_tasks
from .options import (
    DEFAULT_SERVER,
    AsJson,
    Cursor,
    Limit,
    Queue,
    Server,
    TaskIds,
    Type,
    Yes,
)
from .task_text import task_fields, task_json
from .terminal import print_fields, say

app = typer.Typer(help="See tasks, call them off, start them anew.", no_args_is_help=True)

_Statuses = Annotated[
    list[Status] | None, typer.Option("--status", help="Only this status; may be repeated.")
]
_Key = Annotated[str, typer.Option("--key", metavar="KEY", help="Only the holders of this key.")]
_TaskId = Annotated[str, typer.Argument(metavar="ID", help="The task's id.")]


@app.command("list")
def list_tasks(
    *,
    queue: Queue = "",
    type_: Type = "",
    statuses: _Statuses = None,
    key: _Key = "",
    limit: Limit = 50,
    cursor: Cursor = "",
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """List tasks, newest first."""
    wanted = TaskFilter(
        queue=queue, type=type_, statuses=tuple(statuses or ()), idempotency_key=key
    )
    with connected(server) as connection:
        print_tasks(connection.admin, wanted, limit=limit, cursor=cursor, as_json=as_json)


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
def cancel(
    task_ids: TaskIds, *, yes: Yes = False, server: Server = DEFAULT_SERVER, as_json: AsJson = False
) -> None:
    """Call tasks off; a leased one learns it by its worker's next heartbeat."""
    with connected(server) as connection:
        Bulk(
            verb="cancel",
            done="cancelled",
            act=lambda ids: run_blocking(connection.admin.cancel(ids)),
            yes=yes,
            as_json=as_json,
        ).carry_out(task_ids)


@app.command()
def requeue(
    task_ids: TaskIds, *, yes: Yes = False, server: Server = DEFAULT_SERVER, as_json: AsJson = False
) -> None:
    """Start failed, dead or cancelled tasks anew, with all their attempts."""
    with connected(server) as connection:
        Bulk(
            verb="requeue",
            done="requeued",
            act=lambda ids: run_blocking(connection.admin.requeue(ids)),
            yes=yes,
            as_json=as_json,
        ).carry_out(task_ids)
