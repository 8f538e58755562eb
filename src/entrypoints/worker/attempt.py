"""One call of a handler, from the payload's text to the settlement that reports it."""

from __future__ import annotations

import json
from typing import Any

from ...domain.requests import Settlement
from . import outcome
from .handlers import Handler
from .held import Held


async def attempt(handler: Handler, held: Held) -> Settlement:
    """
    Call an `async def` handler, and return what it did. Never raises.

    Whatever the handler raises is its own affair: SystemExit fails the attempt and leaves
    the worker alone, and so do KeyboardInterrupt, since a worker that has the process for
    itself catches Ctrl-C as a signal, and a CancelledError that nobody asked for.
    """
    try:
        value = await handler.call(_payload(held), held.context)
    except BaseException as error:  # noqa: BLE001  a handler may raise anything; see above
        return outcome.of_error(held.ref, error, held.context.cancel_reason)
    return outcome.of_value(held.ref, value)


def attempt_blocking(handler: Handler, held: Held) -> Settlement:
    """Call a `def` handler, and return what it did. Never raises; see `attempt`."""
    try:
        value = handler.call(_payload(held), held.context)
    except BaseException as error:  # noqa: BLE001  a handler may raise anything; see above
        return outcome.of_error(held.ref, error, held.context.cancel_reason)
    return outcome.of_value(held.ref, value)


def _payload(held: Held) -> Any:
    try:
        return json.loads(held.leased.task.payload or "{}")
    except (ValueError, RecursionError) as error:
        raise outcome.UnreadablePayloadError("the payload is no JSON") from error
