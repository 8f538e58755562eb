"""
Refusals as values: one table between the domain's errors and (code, reason), both ways.

How they travel is in `refusals`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

import attrs
import grpc

from ...domain.errors import (
    ContendedError,
    FieldViolation,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    LeaseLostError,
    LostReason,
    OverloadedError,
    StorageError,
    StorageUnavailableError,
    TaskFinishedError,
    TaskIdReusedError,
    TaskNotDeadError,
    TaskNotFinishedError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from ...domain.ids import IdempotencyKey, QueueName, TaskId

Code = grpc.StatusCode

_TRY_AGAIN_AFTER: Final = timedelta(seconds=1)


@attrs.frozen(kw_only=True)
class Verdict:
    """Why a call, or one item of it, was refused."""

    code: grpc.StatusCode
    reason: str = ""
    """A word for programs; empty where the code says all, or where no leaseq server spoke."""

    message: str
    metadata: Mapping[str, str] = attrs.field(factory=dict)
    violations: tuple[FieldViolation, ...] = ()
    retry_after: timedelta | None = None


DRAINING: Final = Verdict(
    code=Code.UNAVAILABLE,
    reason="DRAINING",
    message="the server is shutting down, and did nothing",
    retry_after=timedelta(milliseconds=100),
)
MALFORMED: Final = Verdict(
    code=Code.INVALID_ARGUMENT,
    message="request: cannot be read as the message of this method",
    violations=(
        FieldViolation(field="request", description="cannot be read as the message of this method"),
    ),
)
INTERNAL: Final = Verdict(
    code=Code.INTERNAL, reason="INTERNAL", message="the server failed; its log says how"
)


@attrs.frozen(kw_only=True)
class _Row:
    error: type[TaskQueueError]
    code: grpc.StatusCode
    reasons: tuple[str, ...]
    """The first is told where the error has none of its own."""

    any_reason: bool = False
    """Whether a verdict with another reason, or none, means this error too."""

    carries: tuple[str, ...] = ()
    """The error's attributes that go into the metadata."""

    rebuild: Callable[[Verdict], TaskQueueError]


# A verdict means the first row that fits it; an error is told as the first that is its class.
_TABLE: Final = (
    _Row(
        error=InvalidArgumentError,
        code=Code.INVALID_ARGUMENT,
        reasons=("",),
        any_reason=True,
        rebuild=lambda verdict: InvalidArgumentError(
            verdict.violations or [FieldViolation(field="request", description=verdict.message)]
        ),
    ),
    _Row(
        error=TaskNotFoundError,
        code=Code.NOT_FOUND,
        reasons=("TASK_NOT_FOUND",),
        carries=("task_id",),
        rebuild=lambda verdict: TaskNotFoundError(_task_id(verdict)),
    ),
    _Row(
        error=IdempotencyKeyReusedError,
        code=Code.ALREADY_EXISTS,
        reasons=("IDEMPOTENCY_KEY_REUSED",),
        carries=("queue", "key", "task_id"),
        rebuild=lambda verdict: IdempotencyKeyReusedError(
            queue=QueueName(verdict.metadata["queue"]),
            key=IdempotencyKey(verdict.metadata["key"]),
            task_id=_task_id(verdict),
        ),
    ),
    _Row(
        error=TaskIdReusedError,
        code=Code.ALREADY_EXISTS,
        reasons=("TASK_ID_REUSED",),
        carries=("task_id",),
        rebuild=lambda verdict: TaskIdReusedError(_task_id(verdict)),
    ),
    _Row(
        error=TaskFinishedError,
        code=Code.FAILED_PRECONDITION,
        reasons=("TASK_FINISHED",),
        carries=("task_id", "status"),
        rebuild=lambda verdict: TaskFinishedError(_task_id(verdict), verdict.metadata["status"]),
    ),
    _Row(  # shares TASK_FINISHED with the row above, and carries less
        error=LeaseLostError,
        code=Code.FAILED_PRECONDITION,
        reasons=tuple(LostReason),
        carries=("task_id",),
        rebuild=lambda verdict: LeaseLostError(_task_id(verdict), LostReason(verdict.reason)),
    ),
    _Row(
        error=TaskNotDeadError,
        code=Code.FAILED_PRECONDITION,
        reasons=("TASK_NOT_DEAD",),
        carries=("task_id", "status"),
        rebuild=lambda verdict: TaskNotDeadError(_task_id(verdict), verdict.metadata["status"]),
    ),
    _Row(
        error=TaskNotFinishedError,
        code=Code.FAILED_PRECONDITION,
        reasons=("TASK_NOT_FINISHED",),
        carries=("task_id", "status"),
        rebuild=lambda verdict: TaskNotFinishedError(_task_id(verdict), verdict.metadata["status"]),
    ),
    _Row(
        error=OverloadedError,
        code=Code.RESOURCE_EXHAUSTED,
        reasons=("RESOURCE_EXHAUSTED",),
        any_reason=True,
        rebuild=lambda verdict: OverloadedError(
            verdict.reason or "RESOURCE_EXHAUSTED",
            verdict.message,
            retry_after=verdict.retry_after or _TRY_AGAIN_AFTER,
        ),
    ),
    _Row(
        error=ContendedError,
        code=Code.ABORTED,
        reasons=("CONTENDED",),
        carries=("subject",),
        rebuild=lambda verdict: ContendedError(verdict.metadata["subject"]),
    ),
    _Row(
        error=UnreadableTaskError,
        code=Code.DATA_LOSS,
        reasons=("TASK_UNREADABLE",),
        carries=("task_id",),
        rebuild=lambda verdict: UnreadableTaskError(_task_id(verdict)),
    ),
    _Row(
        error=StorageUnavailableError,
        code=Code.UNAVAILABLE,
        reasons=("STORAGE_UNAVAILABLE",),
        any_reason=True,
        rebuild=lambda verdict: StorageUnavailableError(verdict.message),
    ),
    _Row(
        error=StorageError,
        code=Code.INTERNAL,
        reasons=("STORAGE_FAILED",),
        any_reason=True,
        rebuild=lambda verdict: StorageError(verdict.message),
    ),
)

# What the connection itself says when an answer did not come.
_NO_ANSWER: Final = frozenset({Code.DEADLINE_EXCEEDED, Code.CANCELLED})


def _task_id(verdict: Verdict) -> TaskId:
    return TaskId(verdict.metadata["task_id"])


def verdict_on(error: TaskQueueError) -> Verdict:
    """Return what the wire says about `error`."""
    row = next((row for row in _TABLE if isinstance(error, row.error)), None)
    if row is None:
        return INTERNAL
    retry_after = _TRY_AGAIN_AFTER if row.code is Code.UNAVAILABLE else None
    return Verdict(
        code=row.code,
        reason=str(getattr(error, "reason", row.reasons[0])),
        message=str(error),
        metadata={name: str(getattr(error, name)) for name in row.carries},
        violations=error.violations if isinstance(error, InvalidArgumentError) else (),
        retry_after=error.retry_after if isinstance(error, OverloadedError) else retry_after,
    )


def error_of(verdict: Verdict) -> TaskQueueError:
    """Return the error that `verdict` tells of; one that no row knows is a storage error."""
    for row in _TABLE:
        if (
            row.code is verdict.code
            and (row.any_reason or verdict.reason in row.reasons)
            and verdict.metadata.keys() >= set(row.carries)
        ):
            return row.rebuild(verdict)
    if verdict.code in _NO_ANSWER:
        return StorageUnavailableError(verdict.message)
    words = (verdict.code.name, verdict.reason, verdict.message)
    return StorageError(": ".join(word for word in words if word))
