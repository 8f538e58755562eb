"""`leaseq enqueue`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

import typer

from ...adapters.task_json import task_json
from ...domain.errors import TaskQueueError
from ...domain.limits import DEFAULT_QUEUE
from ...domain.requests import NewTask
from ...domain.views import Enqueued
from ..connection import run_blocking
from .connecting import connected
from .options import DEFAULT_SERVER, AsJson, Server, as_duration
from .payloads import read_payload
from .task_text import task_fields
from .terminal import UnwritableOutputError, note, print_fields, say


def _as_moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2030-01-31T12:00:00Z") from None
    if moment.tzinfo is None:
        raise typer.BadParameter("must say its time zone, as in 2030-01-31T12:00:00Z")
    return moment


_Delay = Annotated[
    timedelta | None,
    typer.Option(
        "--delay", parser=as_duration, metavar="DURATION", help="How long to wait before it is due."
    ),
]
_RunAfter = Annotated[
    datetime | None,
    typer.Option(
        "--run-after",
        parser=_as_moment,
        metavar="TIME",
        help="When it becomes due; not with --delay.",
    ),
]
_RetryBase = Annotated[
    timedelta | None,
    typer.Option(
        "--retry-base",
        parser=as_duration,
        metavar="DURATION",
        help="The wait after a failure is this doubled by each attempt so far.  [default: 2s]",
    ),
]
_RetryCap = Annotated[
    timedelta | None,
    typer.Option(
        "--retry-cap",
        parser=as_duration,
        metavar="DURATION",
        help="That wait grows no longer than this.  [default: 1h]",
    ),
]
_Payload = Annotated[
    str,
    typer.Argument(
        metavar="PAYLOAD",
        show_default=False,
        help="A JSON object, @FILE, or - to read it from the input.  [default: {}]",
    ),
]
_Type = Annotated[
    str, typer.Option("--type", metavar="TYPE", help="The name that chooses the handler.")
]
_Queue = Annotated[
    str, typer.Option("--queue", metavar="QUEUE", help="The queue in which it waits.")
]
_Priority = Annotated[
    int, typer.Option("--priority", metavar="NUMBER", help="0 to 255; higher is leased first.")
]
_Key = Annotated[
    str,
    typer.Option(
        "--key", metavar="KEY", help="Idempotency key: in its queue it is stored at most once."
    ),
]
_MaxAttempts = Annotated[
    int | None,
    typer.Option(
        "--max-attempts",
        metavar="NUMBER",
        help="Attempts before it is given up, 1 to 1000.  [default: 10]",
    ),
]
_AllowDifferent = Annotated[
    bool,
    typer.Option(
        "--allow-different-payload", help="Take the task that holds the key, whatever it holds."
    ),
]


def enqueue(  # noqa: PLR0913  one for each thing that can be said of a task
    payload: _Payload = "{}",
    *,
    type_: _Type,
    queue: _Queue = DEFAULT_QUEUE,
    priority: _Priority = 0,
    key: _Key = "",
    delay: _Delay = None,
    run_after: _RunAfter = None,
    max_attempts: _MaxAttempts = None,
    retry_base: _RetryBase = None,
    retry_cap: _RetryCap = None,
    allow_different_payload: _AllowDifferent = False,
    server: Server = DEFAULT_SERVER,
    as_json: AsJson = False,
) -> None:
    """
    Store a task, and print it.

    Durations are seconds, or 500ms, 90s, 5m, 2h, 1d; times are like 2030-01-31T12:00:00Z.
    """
    new = NewTask(
        type=type_,
        payload=read_payload(payload),
        queue=queue,
        priority=priority,
        idempotency_key=key,
        delay=delay,
        run_after=run_after,
        max_attempts=max_attempts,
        retry_base=retry_base,
        retry_cap=retry_cap,
        allow_different_payload=allow_different_payload,
    )
    _store(new, server=server, as_json=as_json)


def _store(new: NewTask, *, server: str, as_json: bool) -> None:
    with connected(server) as connection:
        [outcome] = run_blocking(connection.queue.enqueue([new]))
        if isinstance(outcome, TaskQueueError):
            raise outcome
    try:
        _print(outcome, as_json=as_json)
    except UnwritableOutputError as error:
        # Whoever takes this for a refusal would enqueue it again.
        raise UnwritableOutputError(f"task {outcome.task.id} is stored, but {error}") from None


def _print(enqueued: Enqueued, *, as_json: bool) -> None:
    if as_json:
        say(task_json(enqueued.task, created=enqueued.created))
        return
    if not enqueued.created:
        note("the key was taken already; this is the task that holds it")
    print_fields(task_fields(enqueued.task))
