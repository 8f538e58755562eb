from __future__ import annotations

import logging
from typing import Any, NoReturn, cast

import grpc
import pytest

from leaseq.adapters.grpc.calls import Calls
from leaseq.adapters.grpc.generated import queue_pb2 as pb
from leaseq.adapters.grpc.methods import ENQUEUE
from leaseq.adapters.grpc.trouble import StorageTrouble
from leaseq.domain.errors import StorageError, StorageUnavailableError

FULL = StorageUnavailableError("SQLite cannot work at the moment: database or disk is full")
READ_ONLY = StorageError("SQLite refuses: attempt to write a readonly database")


class Seconds:
    def __init__(self) -> None:
        self.passed = 0.0

    def __call__(self) -> float:
        return self.passed


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def trouble(seconds: Seconds, caplog: pytest.LogCaptureFixture) -> StorageTrouble:
    caplog.set_level(logging.INFO)
    return StorageTrouble(seconds)


def test_a_fault_that_lasts_is_told_when_it_begins_and_when_it_ends(
    trouble: StorageTrouble, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(100):
        trouble.failed("Enqueue", FULL)
        trouble.succeeded("GetTask")
        seconds.passed += 1
    seconds.passed += 5
    for _ in range(3):
        trouble.succeeded("Enqueue")

    assert caplog.messages == ["storage fails calls", "storage serves calls again"]
    begin, end = (vars(record) for record in caplog.records)
    assert (begin["error"], begin["method"]) == (str(FULL), "Enqueue")
    assert (end["failed_calls"], end["seconds"]) == (100, 99)


def test_what_reads_does_not_end_what_writes_have_met(
    trouble: StorageTrouble, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.failed("Enqueue", FULL)
    seconds.passed += 59
    trouble.succeeded("GetTask")
    before = list(caplog.messages)
    seconds.passed += 1
    trouble.succeeded("GetTask")

    assert before == ["storage fails calls"]
    assert caplog.messages[1:] == ["storage serves calls again"]


def test_a_success_between_failures_ends_nothing(
    trouble: StorageTrouble, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.failed("Lease", FULL)
    seconds.passed += 4
    trouble.succeeded("Lease")
    trouble.failed("Lease", FULL)

    assert caplog.messages == ["storage fails calls"]


def test_another_fault_is_told_as_well(
    trouble: StorageTrouble, caplog: pytest.LogCaptureFixture
) -> None:
    for error in (FULL, READ_ONLY, FULL, READ_ONLY):
        trouble.failed("Enqueue", error)

    assert [vars(record)["error"] for record in caplog.records] == [str(FULL), str(READ_ONLY)]


def test_the_next_fault_is_told_again(
    trouble: StorageTrouble, seconds: Seconds, caplog: pytest.LogCaptureFixture
) -> None:
    trouble.failed("Enqueue", FULL)
    seconds.passed += 5
    trouble.succeeded("Enqueue")
    trouble.failed("Enqueue", FULL)

    assert caplog.messages.count("storage fails calls") == 2


class AbortedError(Exception):
    pass


class Connection:
    async def abort_with_status(self, _: object) -> NoReturn:
        raise AbortedError


@pytest.mark.parametrize("error", [FULL, READ_ONLY], ids=["full", "read-only"])
async def test_calls_that_a_storage_fails_are_not_logged_one_by_one(
    error: StorageError, caplog: pytest.LogCaptureFixture
) -> None:
    async def enqueue(_: pb.EnqueueRequest) -> Any:
        raise error

    handler = Calls().replying(ENQUEUE, enqueue)
    assert handler.unary_unary is not None
    for _ in range(3):
        with pytest.raises(AbortedError):
            await cast("Any", handler.unary_unary)(b"", cast("grpc.ServicerContext", Connection()))

    assert caplog.messages == ["storage fails calls"]
