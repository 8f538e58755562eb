"""`leaseq demo`."""

from __future__ import annotations

import typer

from .terminal import note


def demo() -> None:
    """Watch a queue at work for some seconds, with a worker that is killed."""
    # Other commands should not pay for these imports.
    from rich.console import Console  # noqa: PLC0415

    from ..demo import story  # noqa: PLC0415

    try:
        story.run(Console())
    except (story.DemoFailedError, TimeoutError, OSError) as error:
        note(f"the demo failed: {error}")
        raise typer.Exit(1) from None
