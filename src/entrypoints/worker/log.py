"""What of an error may stand in a log."""

from __future__ import annotations

from ...domain.errors import TaskQueueError


def describe(error: BaseException) -> str:
    """
    Return the class of `error`, and its text where that text is ours.

    The text of anybody else's error may hold a payload or a secret.
    """
    name = type(error).__name__
    return f"{name}: {error}" if isinstance(error, TaskQueueError) else name
