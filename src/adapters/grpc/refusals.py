"""
Refusals as messages: the status of a call, and the `Refusal` of one item of a batch.

A status carries the details of google.rpc; a `Refusal` has fields for the same.

Source: https://google.aip.dev/193 (Errors).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

import attrs
import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from grpc_status import rpc_status

from ...domain.errors import FieldViolation, TaskQueueError
from .generated import queue_pb2 as pb
from .scalars import read_span, write_span
from .status import Verdict, error_of, verdict_on

DOMAIN: Final = "leaseq"
"""Of every ErrorInfo."""

# How gRPC's core begins where a call found no connection to travel on. It offers no other sign; a
# connection that broke under a call, which may have arrived, has other words.
_NO_CONNECTION: Final = (
    "connections to all backends failing",
    "errors resolving ",
    "failed to connect to all addresses",
    "DNS resolution failed",
)

_DETAILS_KEY: Final = "grpc-status-details-bin"
_CODES: Final[dict[int, grpc.StatusCode]] = {code.value[0]: code for code in grpc.StatusCode}

# A status travels in header fields. Many programs refuse more than 8 KiB of them in all, and
# on the way bytes that are not ASCII triple in the message, and binary details grow by a third.
_MESSAGE_BYTES: Final = 512
_VIOLATIONS_BYTES: Final = 2048


# --- the status of a call


def write_status(verdict: Verdict) -> grpc.Status:
    """Return `verdict` as the status of a call."""
    told = _bounded(verdict)
    status = Status(code=told.code.value[0], message=told.message)
    for detail in _details(told):
        status.details.add().Pack(detail)
    return rpc_status.to_status(status)


def _details(verdict: Verdict) -> Iterable[Message]:
    if verdict.reason:
        yield ErrorInfo(domain=DOMAIN, reason=verdict.reason, metadata=verdict.metadata)
    if verdict.violations:
        yield BadRequest(
            field_violations=[
                BadRequest.FieldViolation(field=violation.field, description=violation.description)
                for violation in verdict.violations
            ]
        )
    if verdict.retry_after is not None:
        yield RetryInfo(retry_delay=write_span(verdict.retry_after))


class FailedCall(Protocol):
    """What gRPC raises where a call was refused, with and without an event loop."""

    def code(self) -> grpc.StatusCode:
        """Return the status code."""
        ...

    def details(self) -> str | None:
        """Return the message of the status."""
        ...

    def trailing_metadata(self) -> Iterable[tuple[str, Any]] | None:
        """Return the header fields that came last."""
        ...


def read_status(call: FailedCall, *, target: str) -> Verdict:
    """Return why `call` failed; where the connection itself did, the message names `target`."""
    status = _rich_status(call)
    if status is None:
        return Verdict(code=call.code(), message=_words_of_the_connection(call, target))
    info = ErrorInfo()
    faults = BadRequest()
    retry = RetryInfo()
    for detail in status.details:
        _ = detail.Unpack(info) or detail.Unpack(faults) or detail.Unpack(retry)
    return Verdict(
        code=call.code(),
        reason=info.reason,
        message=status.message,
        metadata=dict(info.metadata),
        violations=_read_violations(faults.field_violations),
        retry_after=read_span(retry.retry_delay) if retry.HasField("retry_delay") else None,
    )


def was_never_sent(call: FailedCall) -> bool:
    """Whether `call` failed for want of a connection, so that no server saw it."""
    return (
        call.code() is grpc.StatusCode.UNAVAILABLE
        and (call.details() or "").startswith(_NO_CONNECTION)
        and _rich_status(call) is None
    )


def _words_of_the_connection(call: FailedCall, target: str) -> str:
    match call.code():
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return f"the leaseq server at {target} did not answer in time"
        case grpc.StatusCode.UNAVAILABLE:
            reason = (call.details() or "").rpartition("last error: ")[2]
            return f"the leaseq server at {target} cannot be reached: {reason}"
        case code:
            return f"the leaseq server at {target} answered {code.name}: {call.details()}"


def _rich_status(call: FailedCall) -> Status | None:
    for key, value in call.trailing_metadata() or ():
        if key == _DETAILS_KEY:
            try:
                return Status.FromString(value)
            except DecodeError:
                return None
    return None


# --- the refusal of an item


def write_refusal(error: TaskQueueError) -> pb.Refusal:
    """Return `error` as the result of one item."""
    told = _bounded(verdict_on(error))
    return pb.Refusal(
        code=told.code.value[0],
        reason=told.reason,
        message=told.message,
        metadata=told.metadata,
        violations=[
            pb.FieldViolation(field=violation.field, description=violation.description)
            for violation in told.violations
        ],
        retry_after=None if told.retry_after is None else write_span(told.retry_after),
    )


def read_refusal(message: pb.Refusal) -> TaskQueueError:
    """Return the error that one item was answered with."""
    return error_of(
        Verdict(
            code=_CODES.get(message.code, grpc.StatusCode.UNKNOWN),
            reason=message.reason,
            message=message.message,
            metadata=dict(message.metadata),
            violations=_read_violations(message.violations),
            retry_after=read_span(message.retry_after) if message.HasField("retry_after") else None,
        )
    )


class _Violation(Protocol):
    field: str
    description: str


def _read_violations(messages: Iterable[_Violation]) -> tuple[FieldViolation, ...]:
    return tuple(
        FieldViolation(field=message.field, description=message.description) for message in messages
    )


def _bounded(verdict: Verdict) -> Verdict:
    return attrs.evolve(
        verdict,
        message=_cut(verdict.message),
        violations=_first_of(verdict.violations),
    )


def _cut(text: str) -> str:
    data = text.encode(errors="replace")
    if len(data) <= _MESSAGE_BYTES:
        return data.decode()
    return data[:_MESSAGE_BYTES].decode(errors="ignore") + "…"


def _first_of(violations: Sequence[FieldViolation]) -> tuple[FieldViolation, ...]:
    room = _VIOLATIONS_BYTES
    for count, violation in enumerate(violations):
        room -= len(f"{violation.field}{violation.description}".encode(errors="replace"))
        if count and room < 0:
            more = FieldViolation(
                field="request", description=f"has {len(violations) - count} more faults"
            )
            return (*violations[:count], more)
    return tuple(violations)
