"""What a log says is stored, and the commits that it is made of."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import attrs

from leaseq.storage import (
    IdempotencyKey,
    Queue,
    QueueName,
    Task,
    TaskId,
    queue_of,
    queue_record,
    task_of,
    task_record,
)

Key = tuple[QueueName, IdempotencyKey]

_TASKS_PER_LINE: Final = 100


@attrs.frozen(kw_only=True)
class Commit:
    """What one call changes: all of it, or nothing. One line of the log."""

    put: tuple[Task, ...] = ()
    drop: tuple[TaskId, ...] = ()
    queues: tuple[Queue, ...] = ()
    damaged: tuple[dict[str, Any], ...] = ()
    """Records of tasks that cannot be read, kept as they are."""

    def line(self) -> bytes:
        """Return the commit as JSON, with the line's end that says that it is whole."""
        parts = {
            "put": [*map(task_record, self.put), *self.damaged],
            "drop": self.drop,
            "queues": [*map(queue_record, self.queues)],
        }
        return json.dumps({name: part for name, part in parts.items() if part}).encode() + b"\n"


def commit_of(line: bytes) -> Commit:
    """
    Return the commit that `line` holds.

    Raises:
        ValueError: it is damaged beyond a single task.
    """
    parts = json.loads(line)
    if not isinstance(parts, dict) or not parts.keys() <= {"put", "drop", "queues"}:
        raise ValueError("this is no commit")
    put: list[Task] = []
    damaged: list[dict[str, Any]] = []
    for record in parts.get("put", ()):
        try:
            put.append(task_of(record))
        except ValueError:
            # A task without even an id cannot be told to anybody: then the line is damaged.
            if not isinstance(record, dict) or not isinstance(record.get("id"), str):
                raise
            damaged.append(record)
    return Commit(
        put=tuple(put),
        drop=tuple(TaskId(str(each)) for each in parts.get("drop", ())),
        queues=tuple(queue_of(record) for record in parts.get("queues", ())),
        damaged=tuple(damaged),
    )


def key_of(task: Task) -> Key | None:
    """Return what nobody else in the storage may have, or None."""
    return None if task.idempotency_key is None else (task.queue, task.idempotency_key)


@attrs.define
class Contents:
    """All that is stored, as dictionaries."""

    tasks: dict[TaskId, Task] = attrs.field(factory=dict)
    damaged: dict[TaskId, dict[str, Any]] = attrs.field(factory=dict)
    holders: dict[Key, TaskId] = attrs.field(factory=dict)
    queues: dict[QueueName, Queue] = attrs.field(factory=dict)

    def apply(self, commit: Commit) -> None:
        """Let it be as `commit` says."""
        for task in commit.put:
            self.tasks[task.id] = task
            key = key_of(task)
            if key is not None:
                self.holders[key] = task.id
        for task_id in commit.drop:
            self._drop(task_id)
        for queue in commit.queues:
            self.queues[queue.name] = queue
        for record in commit.damaged:
            self._keep_damaged(record)

    def _drop(self, task_id: TaskId) -> None:
        task = self.tasks.pop(task_id, None)
        key = None if task is None else key_of(task)
        if key is not None:
            del self.holders[key]

    def _keep_damaged(self, record: dict[str, Any]) -> None:
        task_id = TaskId(record["id"])
        self._drop(task_id)  # what it was before is not what it is
        self.damaged[task_id] = record
        match record:
            case {"queue": str(queue), "idempotency_key": str(key)}:
                self.holders[QueueName(queue), IdempotencyKey(key)] = task_id

    def commits(self) -> Iterator[Commit]:
        """Return the shortest log of all that is stored."""
        yield Commit(queues=tuple(self.queues.values()), damaged=tuple(self.damaged.values()))
        tasks = list(self.tasks.values())
        for first in range(0, len(tasks), _TASKS_PER_LINE):
            yield Commit(put=tuple(tasks[first : first + _TASKS_PER_LINE]))
