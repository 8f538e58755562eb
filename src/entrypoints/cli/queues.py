"""`leaseq queues ...`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ...domain.ports import TaskAdmin
from ..connection import run_blocking
from .connecting import connected
from .options import DEFAULT_SERVER, AsJson, Server
from .task_text import QUEUE_COLUMNS, queue_row, queues_json
from .terminal import note, print_table, say

app = typer.Typer(help="See queues, and pause them.", no_args_is_help=True)

_Name = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]


@app.command("list")
def list_queues(*, server: Server = DEFAULT_SERVER, as_json: AsJson = False) -> None:
    """List queues with how many tasks have each status."""
    with connected(server) as connection:
        queues = run_blocking(connection.admin.list_queues())
    if as_json:
        say(queues_json(queues))
    else:
        print_table(QUEUE_COLUMNS, [queue_row(queue) for queue in queues])


@app.command()
def pause(queue: _Name, *, server: Server = DEFAULT_SERVER, as_json: AsJson = False) -> None:
    """Let no worker lease from a queue; leases that are out go on."""
    with connected(server, queue="QUEUE") as connection:
        known = _is_known(connection.admin, queue)
        run_blocking(connection.admin.pause_queue(queue))
    _say_state(queue, "paused", paused=True, known=known, as_json=as_json)


@app.command()
def resume(queue: _Name, *, server: Server = DEFAULT_SERVER, as_json: AsJson = False) -> None:
    """Let workers lease from a queue again."""
    with connected(server, queue="QUEUE") as connection:
        known = _is_known(connection.admin, queue)
        run_blocking(connection.admin.resume_queue(queue))
    _say_state(queue, "resumed", paused=False, known=known, as_json=as_json)


def _is_known(admin: TaskAdmin, queue: str) -> bool:
    return any(view.name == queue for view in run_blocking(admin.list_queues()))


def _say_state(queue: str, word: str, *, paused: bool, known: bool, as_json: bool) -> None:
    if not known:
        # To pause before the first task is legitimate, and looks like a name that is misspelt.
        note(f"warning: nothing was known of the queue {queue}: it holds no task")
    if as_json:
        say(json.dumps({"name": queue, "paused": paused}))
    else:
        say(f"{word} {queue}")
