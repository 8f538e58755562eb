from __future__ import annotations

from concurrent.futures import Future
from datetime import timedelta

import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.entrypoints.connection import run_blocking
from leaseq.entrypoints.hosted import Awaiting, Blocking

NONE = timedelta(0)


def test_a_caller_that_blocks_gives_up_at_its_deadline() -> None:
    never: Future[None] = Future()

    with pytest.raises(StorageUnavailableError, match="did not answer within 0 s"):
        run_blocking(Blocking(deadline=NONE)(never, longer=NONE))


def test_an_answer_that_is_there_is_taken_whatever_the_deadline() -> None:
    answered: Future[str] = Future()
    answered.set_result("done")

    assert run_blocking(Blocking(deadline=NONE)(answered, longer=NONE)) == "done"


async def test_a_caller_that_awaits_gives_up_at_its_deadline() -> None:
    never: Future[None] = Future()

    with pytest.raises(StorageUnavailableError, match="did not answer within 0 s"):
        await Awaiting(deadline=NONE)(never, longer=NONE)

    assert never.cancelled()


async def test_an_error_of_a_call_is_not_taken_for_the_end_of_its_time() -> None:
    failed: Future[None] = Future()
    failed.set_exception(TimeoutError("of the call"))

    with pytest.raises(TimeoutError, match="of the call"):
        await Awaiting(deadline=timedelta(minutes=1))(failed, longer=NONE)
