"""A task as a JSON object, for programs that read text."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Final

import attrs

from ..domain.views import TaskView

_NOT_ASCII: Final = re.compile(r"[^\x00-\x7f]")


def task_json(task: TaskView, **more: object) -> str:
    """
    Return a task as a JSON object with the fields of `TaskView`.

    Payload and result stand in it as the JSON they are, digit for digit: reading and
    writing numbers again could change them.
    """
    fields = attrs.asdict(task, value_serializer=_serialised) | more
    texts = {name: json.dumps(value) for name, value in fields.items()}
    texts |= {"payload": _in_ascii(task.payload), "result": _in_ascii(task.result)}
    return "{" + ", ".join(f"{json.dumps(name)}: {text}" for name, text in texts.items()) + "}"


def _in_ascii(json_text: str | None) -> str:
    # Outside ASCII there is nothing in JSON but the insides of strings.
    if json_text is None:
        return "null"
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], json_text)


def _serialised(_: object, __: object, value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value
