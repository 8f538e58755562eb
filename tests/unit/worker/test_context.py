import asyncio

import pytest

from leaseq.domain.views import leased_view
from leaseq.entrypoints.worker import StopReason, TaskContext
from leaseq.testing import NOON, a_lease, a_task


@pytest.fixture
def context() -> TaskContext:
    task = a_task(payload='{"secret": "canary"}', attempts=2)
    return TaskContext(leased_view(task, a_lease(), now=NOON))


def test_a_context_counts_attempts_from_one(context: TaskContext) -> None:
    assert context.attempt == 3


def test_a_context_shows_no_payload(context: TaskContext) -> None:
    assert "canary" not in repr(context)


def test_a_handler_that_need_not_stop_goes_on(context: TaskContext) -> None:
    context.raise_if_cancelled()

    assert not context.cancelled
    assert context.cancel_reason is None


def test_a_handler_that_should_stop_can_leave(context: TaskContext) -> None:
    context.tell(StopReason.CANCEL_REQUESTED)

    assert context.cancelled
    with pytest.raises(asyncio.CancelledError, match="cancel_requested"):
        context.raise_if_cancelled()


def test_the_same_reason_is_news_only_once(context: TaskContext) -> None:
    assert context.tell(StopReason.CANCEL_REQUESTED)
    assert not context.tell(StopReason.CANCEL_REQUESTED)
    assert context.tell(StopReason.LEASE_LOST)


def test_a_lost_lease_stays_lost(context: TaskContext) -> None:
    context.tell(StopReason.LEASE_LOST)

    assert not context.tell(StopReason.SHUTDOWN)
    assert context.cancel_reason is StopReason.LEASE_LOST
