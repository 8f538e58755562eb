"""The commands of the CLI and what they take, read from the program itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
from typer.main import get_command

from leaseq.entrypoints.cli.main import app


@attrs.frozen
class Parameter:
    """An option or an argument of a command."""

    spelling: str
    """As in the help: `--queue QUEUE`, `--insecure / --secure`, `ID`."""

    help: str
    variable: str
    """Of the environment; empty: none that the parser reads."""


@attrs.frozen
class Command:
    name: str
    """As in `tasks list`."""

    parameters: tuple[Parameter, ...]


def commands() -> list[Command]:
    """Return every command that does something, in the order of the help."""
    return [
        Command(name, tuple(_parameter(each) for each in command.params if each.name != "help"))
        for name, command in _leaves(get_command(app), ())
    ]


def _leaves(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield " ".join(path), command
        return
    for name, child in below.items():
        yield from _leaves(child, (*path, name))


def _parameter(parameter: Any) -> Parameter:
    names = " / ".join([*parameter.opts, *parameter.secondary_opts])
    is_option = parameter.opts[0].startswith("-")
    parts = [names if is_option else "", parameter.metavar or ""]
    return Parameter(
        spelling=" ".join(filter(None, parts)),
        help=" ".join((parameter.help or "").split()),
        variable=parameter.envvar or "",
    )
