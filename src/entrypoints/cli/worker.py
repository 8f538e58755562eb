"""`leaseq worker`."""

from __future__ import annotations

from typing import Annotated

import typer

from ..settings import environment, flags, log_settings, process_environment
from .server import LogFormatOption, LogLevelOption
from .terminal import note


def worker(
    name: Annotated[
        str,
        typer.Argument(metavar="MODULE:ATTRIBUTE", help="Where the worker is, as in greet:worker."),
    ],
    *,
    log_level: LogLevelOption = None,
    log_format: LogFormatOption = None,
) -> None:
    """
    Run a worker until SIGTERM or Ctrl-C; what runs then may finish.

    A second signal gives back at once what runs.
    """
    given = flags({"log-level": log_level, "log-format": log_format})
    level, form = log_settings(given, environment(process_environment()))
    # Other commands should not pay for these imports.
    from ..logs import configure_logging  # noqa: PLC0415
    from ..worker import LoadError, load_worker  # noqa: PLC0415

    configure_logging(level=level, form=form)
    try:
        load_worker(name).run()
    except LoadError as error:
        note(f"MODULE:ATTRIBUTE: {error}")
        raise typer.Exit(2) from None
