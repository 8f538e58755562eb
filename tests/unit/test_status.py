from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import attrs
import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status
from hypothesis import given

import wire_values as wire
from leaseq.adapters.grpc.refusals import (
    read_refusal,
    read_status,
    was_never_sent,
    write_refusal,
    write_status,
)
from leaseq.adapters.grpc.status import DRAINING, INTERNAL, Verdict, error_of, verdict_on
from leaseq.domain.errors import (
    FieldViolation,
    InvalidArgumentError,
    LeaseLostError,
    LostReason,
    NotSentError,
    OverloadedError,
    StorageError,
    StorageUnavailableError,
    TaskFinishedError,
    TaskNotFoundError,
    TaskQueueError,
)
from wire_values import TASK_ID

Code = grpc.StatusCode


@attrs.frozen(kw_only=True)
class Failed:
    """A call that failed, as gRPC shows it to a client."""

    status: grpc.Status

    def code(self) -> grpc.StatusCode:
        return self.status.code

    def details(self) -> str | None:
        return self.status.details

    def trailing_metadata(self) -> Any:
        return self.status.trailing_metadata


def told(error: TaskQueueError) -> TaskQueueError:
    """Return `error` as the client of a refused call sees it."""
    return error_of(read_status(Failed(status=write_status(verdict_on(error))), target="host:1"))


def facts(error: TaskQueueError) -> tuple[object, ...]:
    return type(error), str(error), vars(error)


def leaves(error: type[TaskQueueError]) -> Iterator[type[TaskQueueError]]:
    for child in error.__subclasses__():
        yield from leaves(child)
    if error.__module__.startswith("leaseq.domain.") and not error.__subclasses__():
        yield error


@given(wire.errors)
def test_a_status_brings_the_same_error_to_the_client(error: TaskQueueError) -> None:
    assert facts(told(error)) == facts(error)


@given(wire.errors)
def test_a_refusal_brings_the_same_error_to_the_client(error: TaskQueueError) -> None:
    assert facts(read_refusal(write_refusal(error))) == facts(error)


# A NotSentError is a client's own: no server can say it.
@pytest.mark.parametrize(
    "error",
    [error for error in leaves(TaskQueueError) if error is not NotSentError]
    + [StorageUnavailableError],
    ids=lambda error: error.__name__,
)
def test_the_table_knows_every_error(error: type[TaskQueueError]) -> None:
    known = SAMPLES[error]

    assert verdict_on(known) != INTERNAL
    assert facts(told(known)) == facts(known)


SAMPLES: dict[type[TaskQueueError], TaskQueueError] = {
    type(sample): sample for sample in wire.ERROR_SAMPLES
}


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (wire.ERROR_SAMPLES[0], Code.INVALID_ARGUMENT, ""),
        (TaskNotFoundError(TASK_ID), Code.NOT_FOUND, "TASK_NOT_FOUND"),
        (
            LeaseLostError(TASK_ID, LostReason.LEASE_SUPERSEDED),
            Code.FAILED_PRECONDITION,
            "LEASE_SUPERSEDED",
        ),
        (
            LeaseLostError(TASK_ID, LostReason.TASK_FINISHED),
            Code.FAILED_PRECONDITION,
            "TASK_FINISHED",
        ),
        (TaskFinishedError(TASK_ID, "dead"), Code.FAILED_PRECONDITION, "TASK_FINISHED"),
        (StorageUnavailableError("away"), Code.UNAVAILABLE, "STORAGE_UNAVAILABLE"),
        (StorageError("broken"), Code.INTERNAL, "STORAGE_FAILED"),
    ],
    ids=[
        "bad argument",
        "not found",
        "superseded",
        "lease of a finished task",
        "cancel of a finished task",
        "storage away",
        "storage broken",
    ],
)
def test_a_status_says_why_in_words_for_programs(
    error: TaskQueueError, code: grpc.StatusCode, reason: str
) -> None:
    verdict = read_status(Failed(status=write_status(verdict_on(error))), target="host:1")

    assert (verdict.code, verdict.reason) == (code, reason)


def test_a_status_carries_the_details_of_google_rpc() -> None:
    error = OverloadedError("TOO_MANY_WAITERS", "later", retry_after=timedelta(seconds=3))

    [(_, raw)] = write_status(verdict_on(error)).trailing_metadata

    info, retry = ErrorInfo(), RetryInfo()
    assert isinstance(raw, bytes)
    status = Status.FromString(raw)
    assert status.details[0].Unpack(info)
    assert status.details[1].Unpack(retry)
    assert (info.domain, info.reason) == ("leaseq", "TOO_MANY_WAITERS")
    assert retry.retry_delay.seconds == 3


def test_a_bad_argument_has_a_violation_per_fault() -> None:
    faults = [
        FieldViolation(field="queue", description="a"),
        FieldViolation(field="type", description="b"),
    ]

    answer = told(InvalidArgumentError(faults))

    assert isinstance(answer, InvalidArgumentError)
    assert list(answer.violations) == faults


def test_a_status_of_any_size_fits_into_the_header() -> None:
    faults = [FieldViolation(field=f"queues[{n}]", description="ж" * 300) for n in range(200)]

    status = write_status(verdict_on(InvalidArgumentError(faults)))
    answer = told(InvalidArgumentError(faults))

    [(_, raw)] = status.trailing_metadata
    assert 3 * len((status.details or "").encode()) + 4 / 3 * len(raw) < 7 * 1024
    assert isinstance(answer, InvalidArgumentError)
    assert answer.violations[:3] == tuple(faults[:3])
    assert answer.violations[-1].description.endswith("more faults")


@pytest.mark.parametrize(
    ("verdict", "error"),
    [
        (Verdict(code=Code.UNAVAILABLE, message="m"), StorageUnavailableError),
        (Verdict(code=Code.DEADLINE_EXCEEDED, message="m"), StorageUnavailableError),
        (Verdict(code=Code.CANCELLED, message="m"), StorageUnavailableError),
        (DRAINING, StorageUnavailableError),
        (Verdict(code=Code.UNKNOWN, message="m"), StorageError),
        (Verdict(code=Code.UNIMPLEMENTED, message="m"), StorageError),
        (Verdict(code=Code.FAILED_PRECONDITION, reason="NEW", message="m"), StorageError),
        (Verdict(code=Code.NOT_FOUND, reason="TASK_NOT_FOUND", message="m"), StorageError),
        (Verdict(code=Code.INVALID_ARGUMENT, message="m"), InvalidArgumentError),
        (Verdict(code=Code.RESOURCE_EXHAUSTED, message="m"), OverloadedError),
        (INTERNAL, StorageError),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_verdict_of_others_becomes_the_nearest_error(
    verdict: Verdict, error: type[TaskQueueError]
) -> None:
    answer = error_of(verdict)

    assert type(answer) is error
    assert verdict.message in str(answer)


def test_the_connections_own_errors_name_the_address() -> None:
    failed = Failed(status=Bare(code=Code.UNAVAILABLE, details="connection refused"))

    verdict = read_status(failed, target="db:7480")

    assert verdict.message == ("the leaseq server at db:7480 cannot be reached: connection refused")


@pytest.mark.parametrize(
    ("code", "details", "certain"),
    [
        (Code.UNAVAILABLE, "connections to all backends failing; last error: refused", True),
        (Code.UNAVAILABLE, "errors resolving db:7480: not found", True),
        (Code.UNAVAILABLE, "Socket closed", False),
        (Code.UNAVAILABLE, "", False),
        (Code.INTERNAL, "connections to all backends failing", False),
    ],
)
def test_only_a_call_without_a_connection_was_certainly_never_sent(
    code: grpc.StatusCode, details: str, *, certain: bool
) -> None:
    assert was_never_sent(Failed(status=Bare(code=code, details=details))) is certain


def test_what_a_server_says_was_sent_to_it() -> None:
    spoken = write_status(Verdict(code=Code.UNAVAILABLE, message="errors resolving its database"))

    assert not was_never_sent(Failed(status=spoken))


def test_of_a_failed_connection_only_the_last_reason_is_told() -> None:
    details = "connections to all backends failing; last error: connection refused"
    failed = Failed(status=Bare(code=Code.UNAVAILABLE, details=details))

    assert read_status(failed, target="h:1").message.endswith("reached: connection refused")


def test_details_that_are_no_message_are_passed_over() -> None:
    garbage = (("grpc-status-details-bin", b"\xff\xff"),)
    failed = Failed(status=Bare(code=Code.NOT_FOUND, details="gone", trailing_metadata=garbage))

    verdict = read_status(failed, target="host:1")

    assert (verdict.code, verdict.reason) == (Code.NOT_FOUND, "")


def test_an_error_that_no_table_knows_is_told_without_details() -> None:
    class SurpriseError(TaskQueueError):
        pass

    assert verdict_on(SurpriseError("secret")) == INTERNAL


@attrs.frozen(kw_only=True)
class Bare(grpc.Status):
    code: grpc.StatusCode
    details: str = ""
    trailing_metadata: Any = None
