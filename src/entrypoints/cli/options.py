"""Options that several commands share."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final

import typer

from ...domain.errors import InvalidArgumentError
from ..durations import parse_duration
from ..settings import DEFAULT_GRPC
from ..urls import parse_url

DEFAULT_SERVER: Final = str(DEFAULT_GRPC)


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


Server = Annotated[
    str,
    typer.Option(
        "--server",
        envvar="LEASEQ_SERVER",
        metavar="HOST:PORT",
        help="The server to talk to; or the URL of a storage, to use it without a server.",
        callback=_as_url,
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TaskIds = Annotated[list[str], typer.Argument(metavar="ID...", help="Ids of tasks.")]
Queue = Annotated[str, typer.Option("--queue", metavar="QUEUE", help="Only this queue.")]
Type = Annotated[str, typer.Option("--type", metavar="TYPE", help="Only tasks of this type.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many tasks to list at most.")]
Cursor = Annotated[
    str, typer.Option("--cursor", metavar="CURSOR", help="Go on where a list before ended.")
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask, however many they are.")]
