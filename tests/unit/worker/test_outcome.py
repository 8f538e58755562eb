import asyncio
from datetime import timedelta

import pytest

from leaseq.domain.errors import InvalidArgumentError
from leaseq.domain.limits import MAX_ERROR_BYTES
from leaseq.domain.requests import Complete, Fail, LeaseRef, Release
from leaseq.entrypoints.worker import PermanentFailure, Retry, StopReason
from leaseq.entrypoints.worker.outcome import of_death, of_error, of_refusal, of_value
from leaseq.testing import a_task_id

REF = LeaseRef(task_id=a_task_id(1), lease_token="token-1")


def break_with(error: BaseException) -> None:
    raise error


def caught(error: BaseException) -> BaseException:
    try:
        break_with(error)
    except BaseException as same:  # noqa: BLE001  so that it has a traceback
        return same
    raise AssertionError("nothing was raised")


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (None, ""),
        ({"b": 1, "a": [True, None]}, '{"a": [true, null], "b": 1}'),
        ("grüße", '"grüße"'),
        (0, "0"),
        (False, "false"),
    ],
    ids=repr,
)
def test_what_json_can_hold_is_a_result(value: object, result: str) -> None:
    assert of_value(REF, value) == Complete(ref=REF, result=result)


def test_a_result_that_is_too_deep_or_too_large_is_useless() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]

    for value in (deep, "x" * 1024 * 1024):
        settlement = of_value(REF, value)

        assert isinstance(settlement, Fail)
        assert not settlement.retry
        assert settlement.error.type == "UnusableResult"


def test_a_coroutine_as_a_result_says_what_to_do_about_it() -> None:
    async def forgotten() -> None: ...

    settlement = of_value(REF, forgotten())

    assert isinstance(settlement, Fail)
    assert "declare it with `async def`" in settlement.error.message


def test_a_result_whose_own_methods_fail_is_useless() -> None:
    class Hostile(dict[str, str]):
        def items(self) -> object:  # type: ignore[override]
            raise OSError("no items")

    settlement = of_value(REF, Hostile(a="b"))

    assert isinstance(settlement, Fail)
    assert not settlement.retry


def test_an_error_is_described_by_class_text_and_traceback() -> None:
    settlement = of_error(REF, caught(ValueError("boom")), None)

    assert isinstance(settlement, Fail)
    assert settlement.retry
    assert settlement.retry_after is None
    assert (settlement.error.type, settlement.error.message) == ("ValueError", "boom")
    assert settlement.error.traceback.rstrip().endswith("ValueError: boom")
    assert "test_outcome.py" in settlement.error.traceback


def test_an_error_is_cut_before_it_travels() -> None:
    settlement = of_error(REF, caught(ValueError("x\x00" * 10_000_000)), None)

    assert isinstance(settlement, Fail)
    error = settlement.error
    size = sum(len(text.encode()) for text in (error.type, error.message, error.traceback))
    assert size <= MAX_ERROR_BYTES
    assert "\x00" not in error.message


def test_an_error_that_cannot_say_what_it_is_is_still_reported() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise OSError("no words")

    settlement = of_error(REF, caught(MuteError()), None)

    assert isinstance(settlement, Fail)
    assert settlement.error.message == "(its text cannot be read)"


def test_a_retry_carries_its_wait() -> None:
    settlement = of_error(REF, caught(Retry("later", after=timedelta(minutes=5))), None)

    assert isinstance(settlement, Fail)
    assert settlement.retry_after == timedelta(minutes=5)
    assert settlement.error.message == "later"


def test_a_retry_without_a_wait_leaves_it_to_the_task() -> None:
    settlement = of_error(REF, caught(Retry()), None)

    assert isinstance(settlement, Fail)
    assert settlement.retry
    assert settlement.retry_after is None


@pytest.mark.parametrize("after", [-1, float("nan"), float("inf"), timedelta(days=366)], ids=repr)
def test_a_retry_after_an_impossible_time_is_refused_where_it_is_raised(
    after: timedelta | float,
) -> None:
    with pytest.raises(ValueError, match="after must be"):
        Retry(after=after)


@pytest.mark.parametrize(
    ("error", "stop", "kind"),
    [
        (ValueError(), None, Fail),
        (asyncio.CancelledError(), None, Fail),
        (SystemExit(1), None, Fail),
        (KeyboardInterrupt(), None, Fail),
        (ValueError(), StopReason.SHUTDOWN, Release),
        (asyncio.CancelledError(), StopReason.SHUTDOWN, Release),
        (PermanentFailure(), StopReason.SHUTDOWN, Fail),
        (Retry(), StopReason.SHUTDOWN, Fail),
        (asyncio.CancelledError(), StopReason.CANCEL_REQUESTED, Release),
        (ValueError(), StopReason.CANCEL_REQUESTED, Fail),
    ],
    ids=repr,
)
def test_a_stop_excuses_what_it_caused(
    error: BaseException, stop: StopReason | None, kind: type
) -> None:
    assert isinstance(of_error(REF, caught(error), stop), kind)


def test_a_refused_result_becomes_a_failure_for_good() -> None:
    settlement = of_refusal(Complete(ref=REF, result="1"), InvalidArgumentError([]))

    assert settlement is not None
    assert not settlement.retry


def test_a_refused_failure_has_no_substitute() -> None:
    assert of_refusal(Fail(ref=REF), InvalidArgumentError([])) is None
    assert of_refusal(Release(ref=REF), InvalidArgumentError([])) is None


@pytest.mark.parametrize("stop", [None, StopReason.TIMEOUT, StopReason.LEASE_LOST])
def test_a_process_that_ends_under_its_handler_fails_the_attempt(stop: StopReason | None) -> None:
    settlement = of_death(REF, "was killed by SIGSEGV", stop)

    assert isinstance(settlement, Fail)
    assert settlement.retry
    assert settlement.error.message == "the process of the handler was killed by SIGSEGV"


@pytest.mark.parametrize("stop", [StopReason.SHUTDOWN, StopReason.CANCEL_REQUESTED])
def test_a_process_that_was_to_end_fails_no_attempt(stop: StopReason) -> None:
    assert of_death(REF, "was killed by SIGKILL", stop) == Release(ref=REF)
