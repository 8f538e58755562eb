"""
The `leaseq` command.

Exit codes: 0 done; 1 refused, with the reason in one line on the standard error; 2
misuse, with the option named.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ...domain.errors import TaskQueueError
from ..settings import InvalidSettingError, hush_grpc_core, process_environment, unknown_variables
from . import dead, queues, tasks
from .demo import demo
from .enqueue import enqueue
from .misuse import MisuseError
from .server import migrate, server
from .terminal import Output, UnwritableOutputError, note
from .worker import worker


class _Refusals(TyperGroup):
    """Turns what commands raise into one line and an exit code."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # click's own context
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (TaskQueueError, UnwritableOutputError) as error:
            note(str(error))
            raise typer.Exit(1) from None
        except (InvalidSettingError, MisuseError) as error:
            note(str(error))
            raise typer.Exit(2) from None


app = typer.Typer(
    cls=_Refusals,
    help="leaseq: a durable, distributed task queue.",
    no_args_is_help=True,
    # Plain help needs no rich, and so comes in half the time.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command()(server)
app.command()(worker)
app.command()(migrate)
app.command()(demo)
app.command()(enqueue)
app.add_typer(tasks.app, name="tasks")
app.add_typer(dead.app, name="dead")
app.add_typer(queues.app, name="queues")


def _print_version(wanted: bool) -> None:  # noqa: FBT001  typer calls it so
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415  slow, and rarely needed

        typer.echo(f"leaseq {version('leaseq')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    # Output that a locale cannot spell should not end a command.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    for name, nearest in unknown_variables(process_environment()):
        note(f"warning: nothing reads {name}; did you mean {nearest}?")


def run() -> None:
    """
    Run the command line of this process.

    Raises:
        SystemExit: with the exit code.
    """
    hush_grpc_core()
    if sys.stdout is not None:
        sys.stdout = Output(sys.stdout)
    try:
        app(prog_name="leaseq")
    except UnwritableOutputError as error:  # of help and the version, which are no commands
        note(str(error))
        sys.exit(1)
