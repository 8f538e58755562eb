"""Storing new tasks, each once under its id and once under its key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, LiteralString

import psycopg

from ...domain.errors import StorageUnavailableError, TaskQueueError, UnreadableTaskError
from ...domain.ids import IdempotencyKey, QueueName, TaskId
from ...domain.storing import Added
from ...domain.task import Task
from .binary import Texts
from .connections import Connections
from .faults import DRIVER_ERRORS, is_refusal, storage_error
from .rows import Row, new_rows, read
from .statements import Schema

# DO NOTHING waits for whoever is about to store the same key, and stores when they roll
# back. It returns nothing for a key that is taken, and this statement could not see who holds
# it: its snapshot is older than the holder's commit. So who holds it is asked afterwards.
_ADD: Final[LiteralString] = """
    INSERT INTO {tasks} (
        id, queue, type, payload, payload_bytes, fingerprint, idempotency_key, status, priority,
        run_after, attempts, max_attempts, retry_base_us, retry_cap_us, releases, lease_number,
        lease_token, lease_owner, lease_expires_at, cancel_requested_at, settled_token, settled_as,
        version, created_at, updated_at, finished_at, last_error, errors, result
    )
    SELECT
        id::uuid, queue, type, payload::jsonb, payload_bytes, fingerprint, key, status, priority,
        run_after, attempts, max_attempts, retry_base, retry_cap, releases, lease_number,
        token, holder, expires_at, cancel_requested_at, settled_token, settled_as,
        version, created_at, updated_at, finished_at, last_error, errors::jsonb, result::jsonb
    FROM unnest(
        %(ids)b, %(queues)b, %(types)b, %(payloads)b, %(payload_bytes)b, %(fingerprints)b, %(keys)b,
        %(statuses)b, %(priorities)b, %(run_after)b, %(attempts)b, %(max_attempts)b,
        %(retry_bases)b, %(retry_caps)b, %(releases)b, %(lease_numbers)b, %(tokens)b, %(holders)b,
        %(expires_at)b, %(cancel_requested_at)b, %(settled_tokens)b, %(settled_as)b,
        %(versions)b, %(created_at)b, %(updated_at)b, %(finished_at)b, %(last_errors)b,
        %(errors)b, %(results)b
    ) AS new (
        id, queue, type, payload, payload_bytes, fingerprint, key,
        status, priority, run_after, attempts, max_attempts,
        retry_base, retry_cap, releases, lease_number, token, holder,
        expires_at, cancel_requested_at, settled_token, settled_as,
        version, created_at, updated_at, finished_at, last_error,
        errors, result
    )
    ON CONFLICT DO NOTHING
    RETURNING id::text
"""

# Under its own id: an earlier try was stored after all. LIMIT 1 keeps the planner from turning
# the join around.
_HOLDERS: Final[LiteralString] = """
    SELECT {columns_without_payload}
    FROM {tasks} AS t WHERE t.id = ANY (%(ids)b::uuid[])
    UNION ALL
    SELECT {columns_without_payload}
    FROM unnest(%(queues)b, %(keys)b) AS wanted (queue, key) CROSS JOIN LATERAL (
        SELECT * FROM {tasks} AS holder
        WHERE holder.queue = wanted.queue AND holder.idempotency_key = wanted.key
        LIMIT 1
    ) AS t
"""

_TRIES: Final = 10
"""How often a key may be freed between the look for its holder and the next try."""

_Outcome = Added | Task | TaskQueueError


class Adding:
    """The `add` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._add = schema.statement(_ADD)
        self._holders = schema.statement(_HOLDERS)

    async def add(self, tasks: Sequence[Task]) -> list[_Outcome]:
        """Store tasks; see `TaskRepository.add`."""
        outcomes: dict[int, _Outcome] = {}
        # Whoever stores the same keys takes them in the same order, so that two batches
        # cannot wait for each other. The first of one key in a batch stays the first.
        waiting = sorted(range(len(tasks)), key=lambda index: _storing_order(tasks[index], index))
        for _ in range(_TRIES):
            if not waiting:
                return [outcomes[index] for index in range(len(tasks))]
            outcomes |= await self._store(_first_of_each_id(tasks, waiting))
            waiting = [index for index in waiting if index not in outcomes]
            if waiting:
                outcomes |= await self._look({index: tasks[index] for index in waiting})
                waiting = [index for index in waiting if index not in outcomes]
        raise StorageUnavailableError("an idempotency key is taken and freed too fast")

    async def _store(self, tasks: dict[int, Task]) -> dict[int, _Outcome]:
        try:
            rows = await self._connections.fetch(self._add, new_rows(list(tasks.values())))
        except DRIVER_ERRORS as error:
            if not is_refusal(error):
                raise
            return await self._store_one_by_one(tasks, error)
        stored = {task_id for (task_id,) in rows}
        return {index: Added.STORED for index, task in tasks.items() if task.id in stored}

    async def _store_one_by_one(
        self, tasks: dict[int, Task], refusal: psycopg.Error | UnicodeEncodeError
    ) -> dict[int, _Outcome]:
        if len(tasks) == 1:
            return dict.fromkeys(tasks, storage_error(refusal))
        outcomes: dict[int, _Outcome] = {}
        for index, task in tasks.items():
            outcomes |= await self._store({index: task})
        return outcomes

    async def _look(self, tasks: dict[int, Task]) -> dict[int, _Outcome]:
        """Answer tasks that are stored already, or whose key is taken; leave out the others."""
        keyed = [task for task in tasks.values() if task.idempotency_key is not None]
        rows = await self._connections.fetch(
            self._holders,
            {
                "ids": Texts(task.id for task in tasks.values()),
                "queues": Texts(task.queue for task in keyed),
                "keys": Texts(task.idempotency_key for task in keyed),
            },
        )
        known = {row[0]: row for row in rows}
        holders = {_key_of(row): row for row in rows}
        outcomes: dict[int, _Outcome] = {}
        for index, task in tasks.items():
            if task.id in known:
                outcomes[index] = _known(known[task.id], task)
            elif (task.queue, task.idempotency_key) in holders:
                outcomes[index] = _holder(holders[task.queue, task.idempotency_key])
        return outcomes


def _storing_order(task: Task, index: int) -> tuple[str, str, str, int]:
    if task.idempotency_key is None:
        return (task.queue, "", task.id, index)
    return (task.queue, task.idempotency_key, "", index)


def _first_of_each_id(tasks: Sequence[Task], waiting: Sequence[int]) -> dict[int, Task]:
    first: dict[TaskId, int] = {}
    for index in sorted(waiting):
        first.setdefault(tasks[index].id, index)
    chosen = set(first.values())
    return {index: tasks[index] for index in waiting if index in chosen}


def _known(row: Row, task: Task) -> _Outcome:
    same = (row[1], row[5]) == (task.queue, task.fingerprint)
    return Added.STORED if same else _holder(row)


def _key_of(row: Row) -> tuple[QueueName, IdempotencyKey | None]:
    return row[1], row[6]


def _holder(row: Row) -> Task | UnreadableTaskError:
    return read(row) or UnreadableTaskError(TaskId(row[0]))
