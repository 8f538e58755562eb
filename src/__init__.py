"""
leaseq: a durable, distributed task queue.

What is named here is public, and loaded when it is first used: importing leaseq costs
next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .domain.errors import ContendedError as ContendedError
    from .domain.errors import FieldViolation as FieldViolation
    from .domain.errors import IdempotencyKeyReusedError as IdempotencyKeyReusedError
    from .domain.errors import InvalidArgumentError as InvalidArgumentError
    from .domain.errors import LeaseLostError as LeaseLostError
    from .domain.errors import LostReason as LostReason
    from .domain.errors import NotSentError as NotSentError
    from .domain.errors import OverloadedError as OverloadedError
    from .domain.errors import StorageError as StorageError
    from .domain.errors import StorageUnavailableError as StorageUnavailableError
    from .domain.errors import TaskFinishedError as TaskFinishedError
    from .domain.errors import TaskIdReusedError as TaskIdReusedError
    from .domain.errors import TaskNotDeadError as TaskNotDeadError
    from .domain.errors import TaskNotFinishedError as TaskNotFinishedError
    from .domain.errors import TaskNotFoundError as TaskNotFoundError
    from .domain.errors import TaskQueueError as TaskQueueError
    from .domain.errors import UnreadableTaskError as UnreadableTaskError
    from .domain.requests import NewTask as NewTask
    from .domain.task import AttemptError as AttemptError
    from .domain.task import Status as Status
    from .domain.views import Depth as Depth
    from .domain.views import Enqueued as Enqueued
    from .domain.views import QueueView as QueueView
    from .domain.views import TaskPage as TaskPage
    from .domain.views import TaskView as TaskView
    from .entrypoints.client import AsyncClient as AsyncClient
    from .entrypoints.client import Client as Client
    from .entrypoints.client import connect as connect
    from .entrypoints.client import connect_async as connect_async
    from .entrypoints.worker import PermanentFailure as PermanentFailure
    from .entrypoints.worker import Retry as Retry
    from .entrypoints.worker import StopReason as StopReason
    from .entrypoints.worker import TaskContext as TaskContext
    from .entrypoints.worker import Worker as Worker

_HOMES: Final = {
    ".domain.errors": (
        "ContendedError",
        "FieldViolation",
        "IdempotencyKeyReusedError",
        "InvalidArgumentError",
        "LeaseLostError",
        "LostReason",
        "NotSentError",
        "OverloadedError",
        "StorageError",
        "StorageUnavailableError",
        "TaskFinishedError",
        "TaskIdReusedError",
        "TaskNotDeadError",
        "TaskNotFinishedError",
        "TaskNotFoundError",
        "TaskQueueError",
        "UnreadableTaskError",
    ),
    ".domain.requests": ("NewTask",),
    ".domain.task": ("AttemptError", "Status"),
    ".domain.views": ("Depth", "Enqueued", "QueueView", "TaskPage", "TaskView"),
    ".entrypoints.client": ("AsyncClient", "Client", "connect", "connect_async"),
    ".entrypoints.worker": ("PermanentFailure", "Retry", "StopReason", "TaskContext", "Worker"),
}
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [*_HOME_OF]  # noqa: PLE0604  names only


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
