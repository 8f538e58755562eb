"""The worker library: leases tasks, runs their handlers, and reports what came of it."""

from __future__ import annotations

from .context import StopReason, TaskContext
from .handlers import LoadError
from .loading import load_worker
from .outcome import PermanentFailure, Retry
from .worker import Worker

__all__ = [
    "LoadError",
    "PermanentFailure",
    "Retry",
    "StopReason",
    "TaskContext",
    "Worker",
    "load_worker",
]
