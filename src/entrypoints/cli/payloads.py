"""Payloads from the command line, a file or the standard input."""

from __future__ import annotations

import sys
from pathlib import Path

import typer


def read_payload(argument: str) -> str:
    """
    Return the JSON text that `argument` gives: itself, `@FILE`, or `-` for the standard input.

    Raises:
        typer.BadParameter: it cannot be read, is not UTF-8, or a file or the input is empty.
    """
    try:
        match argument:
            case "-":
                data = sys.stdin.buffer.read()
            case _ if argument.startswith("@"):
                data = Path(argument[1:]).read_bytes()
            case _:
                return argument
        # Editors of some systems begin a file with a byte order mark.
        text = data.decode("utf-8-sig")
    except OSError as error:
        why = f"cannot read {argument[1:] or 'the standard input'}: {error.strerror}"
        raise typer.BadParameter(why, param_hint="PAYLOAD") from None
    except UnicodeDecodeError:
        raise typer.BadParameter("is not UTF-8", param_hint="PAYLOAD") from None
    # Most likely what should have filled it failed.
    if not text.strip():
        raise typer.BadParameter("the payload is empty; say {}", param_hint="PAYLOAD")
    return text
