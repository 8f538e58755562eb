"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Final

import typer

from ...domain.errors import InvalidArgumentError
from ...domain.task import Status
from ..durations import parse_duration
from ..settings import DEFAULT_GRPC
from ..urls import parse_url

DEFAULT_SERVER: Final = str(DEFAULT_GRPC)
ENDED_UNWELL: Final = (Status.FAILED, Status.DEAD, Status.CANCELLED)
GIVEN_UP: Final = (Status.FAILED, Status.DEAD)
NOT_ENDED: Final = (Status.QUEUED, Status.LEASED)


def as_duration(text: str) -> timedelta:
    """Return a duration given on the command line."""
    try:
        return parse_duration(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def _as_url(text: str) -> str:
    url = text if "://" in text else f"grpc://{text}"
    try:
        parse_url(url)
    except InvalidArgumentError as error:
        why = "; ".join(violation.description for violation in error.violations)
        raise typer.BadParameter(why) from None
    return url


def _only(*allowed: Status) -> Callable[[list[str] | None], list[Status]]:
    def check(given: list[str] | None) -> list[Status]:
        for text in given or ():
            if text not in allowed:
                raise typer.BadParameter(f"{text!r} is none of {', '.join(allowed)}")
        return [Status(text) for text in given or ()]

    return check


def _status(*allowed: Status) -> object:
    return typer.Option(
        "--status",
        metavar="STATUS",
        callback=_only(*allowed),
        help=f"Only this status; may be repeated: {', '.join(allowed)}.",
    )


Server = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="LEASEQ_SERVER",
        metavar="HOST:PORT",
        help="The server to talk to; or the URL of a storage, to use it without one.",
        callback=_as_url,
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Queue = Annotated[str, typer.Option("--queue", metavar="QUEUE", help="Only this queue.")]
Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="Only tasks of this type.")]
Key = Annotated[
    str,
    typer.Option("--key", metavar="KEY", help="Only tasks that hold this idempotency key."),
]
AnyStatus = Annotated[list[str] | None, _status(*Status)]
StatusOfDead = Annotated[list[str] | None, _status(*GIVEN_UP)]
StatusToCancel = Annotated[list[str] | None, _status(*NOT_ENDED)]
StatusToRequeue = Annotated[list[str] | None, _status(*ENDED_UNWELL)]
ErrorText = Annotated[
    str,
    typer.Option(
        "--error",
        metavar="TEXT",
        help="Only tasks whose last error contains this text, spelt like this.",
    ),
]

Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        min=1,
        metavar="NUMBER",
        show_default=False,
        help="How many tasks to list at most.  [default: 50]",
    ),
]
Cursor = Annotated[
    str,
    typer.Option(
        "--cursor", metavar="CURSOR", help="Go on where a list ended: its cursor, or a task's id."
    ),
]
ListAll = Annotated[bool, typer.Option("--all", help="List all, however many they are.")]

TaskIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="Ids of tasks; or none, and --all."),
]
All = Annotated[
    bool, typer.Option("--all", help="All tasks of --queue that the other options name.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say how many --all are.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, however many they are.")]
