"""
For people who add a storage: all that they need to know of leaseq.

The ports to keep, the values that come and go, the errors to raise, what every storage must
do as pure functions, and tasks as plain data. docs/storages.md is its manual; the suites are
in `leaseq.testing`.
"""

from __future__ import annotations

from .adapters.clock import SystemClock
from .adapters.records import RECORD_FORMAT, queue_of, queue_record, task_of, task_record
from .domain.contract import (
    depth,
    depths,
    due_in_order,
    fits,
    has_expired,
    lease_first,
    may_be_pruned,
    newest_first,
    next_due,
    quarantined,
    read,
    repeated,
    replacement,
    still_stands,
    without_payload,
)
from .domain.errors import (
    StorageError,
    StorageUnavailableError,
    TaskQueueError,
    UnreadableTaskError,
)
from .domain.ids import IdempotencyKey, JsonText, LeaseToken, QueueName, TaskId, TaskType, WorkerId
from .domain.lease import Lease
from .domain.lifecycle import lease
from .domain.ports import Clock, QueueRepository, Storage, TaskRepository
from .domain.retry import RetryPolicy
from .domain.storing import (
    Added,
    Change,
    Demand,
    Found,
    PruneRule,
    Queue,
    QueueDepths,
    Replaced,
    Selection,
)
from .domain.task import (
    AttemptError,
    Cancelled,
    Dead,
    Failed,
    Leased,
    Queued,
    Settled,
    State,
    Status,
    Succeeded,
    Task,
    Verb,
    is_due,
    leasing_order,
)
from .domain.views import Depth

__all__ = [
    "RECORD_FORMAT",
    "Added",
    "AttemptError",
    "Cancelled",
    "Change",
    "Clock",
    "Dead",
    "Demand",
    "Depth",
    "Failed",
    "Found",
    "IdempotencyKey",
    "JsonText",
    "Lease",
    "LeaseToken",
    "Leased",
    "PruneRule",
    "Queue",
    "QueueDepths",
    "QueueName",
    "QueueRepository",
    "Queued",
    "Replaced",
    "RetryPolicy",
    "Selection",
    "Settled",
    "State",
    "Status",
    "Storage",
    "StorageError",
    "StorageUnavailableError",
    "Succeeded",
    "SystemClock",
    "Task",
    "TaskId",
    "TaskQueueError",
    "TaskRepository",
    "TaskType",
    "UnreadableTaskError",
    "Verb",
    "WorkerId",
    "depth",
    "depths",
    "due_in_order",
    "fits",
    "has_expired",
    "is_due",
    "lease",
    "lease_first",
    "leasing_order",
    "may_be_pruned",
    "newest_first",
    "next_due",
    "quarantined",
    "queue_of",
    "queue_record",
    "read",
    "repeated",
    "replacement",
    "still_stands",
    "task_of",
    "task_record",
    "without_payload",
]
