"""Tasks and queues as text: for people, and as JSON with the wire's fields."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from ...domain.task import AttemptError, Status
from ...domain.views import Depth, QueueView, TaskView
from ..printable import printable

TASK_COLUMNS: Final = ("id", "queue", "type", "status", "attempts", "run after", "last error")
_MOST_OF_AN_ERROR: Final = 100
QUEUE_COLUMNS: Final = ("queue", "state", *Status, "oldest due")


def task_row(task: TaskView) -> Sequence[str]:
    """Return a task under `TASK_COLUMNS`; of a long error only how it begins."""
    return (
        task.id,
        task.queue,
        task.type,
        task.status,
        f"{task.attempts}/{task.max_attempts}",
        _moment(task.run_after),
        _in_short(task.last_error or ""),
    )


def task_fields(task: TaskView) -> list[tuple[str, str]]:
    """Return everything about a task; what it has not is left out."""
    fields = [
        ("id", task.id),
        ("queue", task.queue),
        ("type", task.type),
        ("status", task.status),
        ("priority", str(task.priority)),
        ("attempts", f"{task.attempts} of {task.max_attempts}"),
        ("run after", _moment(task.run_after)),
        ("created at", _moment(task.created_at)),
        ("updated at", _moment(task.updated_at)),
        ("finished at", _moment(task.finished_at)),
        ("lease owner", task.lease_owner or ""),
        ("lease until", _moment(task.lease_expires_at)),
        ("key", task.idempotency_key or ""),
        ("payload", task.payload or ""),
        ("result", task.result or ""),
        *((f"error {error.attempt}", _error_text(error)) for error in task.errors),
    ]
    return [(name, value) for name, value in fields if value]


def queue_row(queue: QueueView) -> Sequence[str]:
    """Return a queue under `QUEUE_COLUMNS`."""
    return (
        queue.name,
        "paused" if queue.paused else "active",
        *(_depth_text(queue.depths.get(status)) for status in Status),
        "" if queue.oldest_due is None else _age(queue.oldest_due),
    )


def queues_json(queues: Sequence[QueueView]) -> str:
    """Return queues as a JSON object; `oldest_due` is in seconds."""
    documents = [
        {
            "name": queue.name,
            "paused": queue.paused,
            "depths": {
                status: {"count": depth.count, "exact": depth.exact}
                for status, depth in queue.depths.items()
            },
            "oldest_due": None if queue.oldest_due is None else queue.oldest_due.total_seconds(),
        }
        for queue in queues
    ]
    return json.dumps({"queues": documents})


def _moment(at: datetime | None) -> str:
    return "" if at is None else at.isoformat(sep=" ", timespec="seconds").replace("+00:00", "Z")


def _depth_text(depth: Depth | None) -> str:
    if depth is None:
        return "0"
    return str(depth.count) if depth.exact else f"{depth.count}+"


def _age(span: timedelta) -> str:
    seconds = int(span.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _in_short(text: str) -> str:
    lines = text.strip().splitlines() or [""]
    # Spelt out first: that makes it longer.
    line = printable(lines[0])
    if len(lines) == 1 and len(line) <= _MOST_OF_AN_ERROR:
        return line
    return line[: _MOST_OF_AN_ERROR - len("...")].rstrip() + "..."


def _error_text(error: AttemptError) -> str:
    head = f"{_moment(error.at)} {error.worker_id}: {error}"
    return f"{head}\n{error.traceback}" if error.traceback else head
