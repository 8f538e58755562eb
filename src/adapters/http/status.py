"""
Refusals as problem documents: one table from the domain's errors to statuses and reasons.

The reasons are those of gRPC.

Source: RFC 9457, "Problem Details for HTTP APIs"; RFC 9110, "HTTP Semantics".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final

import attrs

from ...domain.errors import (
    ContendedError,
    FieldViolation,
    IdempotencyKeyReusedError,
    InvalidArgumentError,
    LeaseLostError,
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

_TRY_AGAIN_AFTER: Final = timedelta(seconds=1)


@attrs.frozen(kw_only=True)
class Verdict:
    """Why a request, or one item of it, was refused."""

    status: HTTPStatus
    reason: str
    """A word for programs."""

    message: str
    members: Mapping[str, str] = attrs.field(factory=dict)
    """What else the document says, such as the id of the task that holds a key."""

    violations: tuple[FieldViolation, ...] = ()
    retry_after: timedelta | None = None
    headers: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def problem(self) -> dict[str, Any]:
        """The problem document."""
        document: dict[str, Any] = {
            "type": "about:blank",
            "title": self.status.phrase,
            "status": self.status.value,
            "detail": self.message,
            "reason": self.reason,
            **self.members,
        }
        if self.violations:
            document["violations"] = [attrs.asdict(each) for each in self.violations]
        return document

    @property
    def retry_seconds(self) -> int | None:
        """What the header Retry-After says: whole seconds, at least one."""
        if self.retry_after is None:
            return None
        return max(1, math.ceil(self.retry_after.total_seconds()))


class RefusedRequestError(Exception):
    """The request is no good as HTTP, whatever it asks for."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        super().__init__(verdict.message)


DRAINING: Final = Verdict(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    reason="DRAINING",
    message="the server is shutting down, and did nothing",
    retry_after=_TRY_AGAIN_AFTER,
)
CUT_OFF: Final = Verdict(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    reason="DRAINING",
    message="the server is shutting down; what was asked for may have been done",
    retry_after=_TRY_AGAIN_AFTER,
)
TOO_MANY_REQUESTS: Final = Verdict(
    status=HTTPStatus.TOO_MANY_REQUESTS,
    reason="TOO_MANY_REQUESTS",
    message="the server is answering too many requests",
    retry_after=_TRY_AGAIN_AFTER,
)
INTERNAL: Final = Verdict(
    status=HTTPStatus.INTERNAL_SERVER_ERROR,
    reason="INTERNAL",
    message="the server failed; its log says how",
)


@attrs.frozen
class _Row:
    error: type[TaskQueueError]
    status: HTTPStatus
    reason: str
    """Told where the error has none of its own."""

    carries: tuple[str, ...] = ()
    """The error's attributes that go into the document."""


# An error is told as the first that is its class.
_TABLE: Final = (
    _Row(InvalidArgumentError, HTTPStatus.BAD_REQUEST, "INVALID_ARGUMENT"),
    _Row(TaskNotFoundError, HTTPStatus.NOT_FOUND, "TASK_NOT_FOUND", ("task_id",)),
    _Row(
        IdempotencyKeyReusedError,
        HTTPStatus.CONFLICT,
        "IDEMPOTENCY_KEY_REUSED",
        ("queue", "key", "task_id"),
    ),
    _Row(TaskIdReusedError, HTTPStatus.CONFLICT, "TASK_ID_REUSED", ("task_id",)),
    _Row(TaskFinishedError, HTTPStatus.CONFLICT, "TASK_FINISHED", ("task_id",)),
    _Row(LeaseLostError, HTTPStatus.CONFLICT, "", ("task_id",)),
    _Row(TaskNotDeadError, HTTPStatus.CONFLICT, "TASK_NOT_DEAD", ("task_id",)),
    _Row(TaskNotFinishedError, HTTPStatus.CONFLICT, "TASK_NOT_FINISHED", ("task_id",)),
    _Row(OverloadedError, HTTPStatus.TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED"),
    _Row(ContendedError, HTTPStatus.CONFLICT, "CONTENDED"),
    _Row(UnreadableTaskError, HTTPStatus.INTERNAL_SERVER_ERROR, "TASK_UNREADABLE", ("task_id",)),
    _Row(StorageUnavailableError, HTTPStatus.SERVICE_UNAVAILABLE, "STORAGE_UNAVAILABLE"),
    _Row(StorageError, HTTPStatus.INTERNAL_SERVER_ERROR, "STORAGE_FAILED"),
)


def verdict_on(error: TaskQueueError) -> Verdict:
    """Return what HTTP says about `error`."""
    row = next((row for row in _TABLE if isinstance(error, row.error)), None)
    if row is None:
        return INTERNAL
    away = row.status is HTTPStatus.SERVICE_UNAVAILABLE
    return Verdict(
        status=row.status,
        reason=str(getattr(error, "reason", row.reason)),
        message=str(error),
        members={name: str(getattr(error, name)) for name in row.carries},
        violations=error.violations if isinstance(error, InvalidArgumentError) else (),
        retry_after=(
            error.retry_after
            if isinstance(error, OverloadedError)
            else _TRY_AGAIN_AFTER
            if away
            else None
        ),
    )
