"""Holds docs/other-languages.md to the wire: what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import grpc
from google.protobuf.descriptor import FileDescriptor

from leaseq.adapters.grpc.generated import queue_pb2
from leaseq.adapters.grpc.status import DRAINING, verdict_on
from leaseq.domain.errors import (
    ContendedError,
    LostReason,
    StorageUnavailableError,
    TaskNotFoundError,
    UnreadableTaskError,
)
from leaseq.domain.ids import TaskId

PAGE = (Path(__file__).parents[2] / "docs" / "other-languages.md").read_text(encoding="utf-8")
FILE: FileDescriptor = queue_pb2.DESCRIPTOR
MESSAGES = FILE.message_types_by_name
A_TASK = TaskId("01890a5d-ac96-774b-bcce-b302099a8057")


def named(pattern: str) -> set[str]:
    """Return the words in code spelling on the page that have this form."""
    return set(re.findall(rf"`({pattern})`", PAGE))


def test_calls_and_messages_of_the_page_are_on_the_wire() -> None:
    calls = FILE.services_by_name["TaskQueue"].methods_by_name

    assert named("[A-Z][a-z]+[A-Za-z]*") <= {*calls, *MESSAGES}


def test_fields_of_the_page_are_on_the_wire() -> None:
    fields = {field for message in MESSAGES.values() for field in message.fields_by_name}

    assert named("[a-z]+(?:_[a-z]+)*") <= fields | {"leaseq"}  # the domain of ErrorInfo


def test_codes_and_reasons_of_the_page_are_what_a_server_says() -> None:
    codes = {code.name for code in grpc.StatusCode}
    told = [
        ContendedError("a task"),
        StorageUnavailableError(),
        TaskNotFoundError(A_TASK),
        UnreadableTaskError(A_TASK),
    ]
    reasons = {*LostReason, DRAINING.reason, *(verdict_on(error).reason for error in told)}

    assert named("[A-Z]+(?:_[A-Z]+)*") <= codes | reasons
    assert reasons <= named("[A-Z]+(?:_[A-Z]+)*")
