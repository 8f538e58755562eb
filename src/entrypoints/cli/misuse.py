"""What a queue refuses as nonsense, in the words of the operator who asked for it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from ...domain.errors import FieldViolation, InvalidArgumentError

_SPELT: Final = {
    "cursor": "--cursor",
    "delay": "--delay",
    "idempotency_key": "--key",
    "max_attempts": "--max-attempts",
    "page_size": "--limit",
    "payload": "PAYLOAD",
    "priority": "--priority",
    "queue": "--queue",
    "retry.base": "--retry-base",
    "retry.cap": "--retry-cap",
    "run_after": "--run-after",
    "task_id": "ID",
    "type": "--type",
}
"""What a field of the wire is called on the command line."""

_FIELD: Final = re.compile(r"(?:tasks\[\d+\]\.)?(?P<name>retry\.\w+|\w+)")
# A word of the language is no field, so only those with a mark in them count.
_MENTIONED: Final = re.compile("|".join(re.escape(name) for name in _SPELT if not name.isalpha()))


class MisuseError(Exception):
    """An option or an argument is wrong; `str()` names it as the operator spelt it."""


@contextmanager
def naming_options(*, queue: str = "--queue") -> Iterator[None]:
    """
    Name options where a queue names fields.

    Args:
        queue: how the command spells the queue.

    Raises:
        MisuseError: for an InvalidArgumentError.
    """
    try:
        yield
    except InvalidArgumentError as error:
        spelt = _SPELT | {"queue": queue}
        told = [_told(violation, spelt) for violation in error.violations]
        raise MisuseError("; ".join(told)) from None


def _told(violation: FieldViolation, spelt: Mapping[str, str]) -> str:
    found = _FIELD.match(violation.field)
    option = spelt.get(found["name"], violation.field) if found else violation.field
    why = _MENTIONED.sub(lambda mention: spelt[mention[0]], violation.description)
    return f"{option}: {why}"
