from __future__ import annotations

import json

from hypothesis import given, settings

import wire_values as wire
from leaseq.adapters.grpc.status import verdict_on as grpc_verdict_on
from leaseq.adapters.http.status import verdict_on
from leaseq.domain.errors import OverloadedError, StorageUnavailableError, TaskQueueError


@settings(deadline=None)
@given(wire.errors)
def test_http_gives_the_reasons_that_grpc_gives(error: TaskQueueError) -> None:
    verdict, grpc_verdict = verdict_on(error), grpc_verdict_on(error)

    assert verdict.reason == (grpc_verdict.reason or "INVALID_ARGUMENT")
    assert verdict.message == grpc_verdict.message
    assert verdict.violations == grpc_verdict.violations
    assert (verdict.retry_after is None) == (grpc_verdict.retry_after is None)


@settings(deadline=None)
@given(wire.errors)
def test_a_problem_can_be_told_whatever_it_is(error: TaskQueueError) -> None:
    verdict = verdict_on(error)

    document = json.loads(json.dumps(verdict.problem))

    assert document["status"] == verdict.status
    assert document["detail"] == str(error)


@settings(deadline=None)
@given(wire.errors)
def test_who_may_come_again_is_told_when(error: TaskQueueError) -> None:
    is_passing = isinstance(error, OverloadedError | StorageUnavailableError)

    seconds = verdict_on(error).retry_seconds

    assert (seconds is not None) == is_passing
    assert seconds is None or seconds >= 1
