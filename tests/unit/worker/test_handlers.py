import functools
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from leaseq.entrypoints.worker.handlers import Executor, Handler, Handlers


class Sender:
    async def send(self, payload: Any) -> None: ...

    def note(self, payload: Any, ctx: Any) -> None: ...


class Caller:
    async def __call__(self, payload: Any, ctx: Any) -> None: ...


async def plain_async(payload: Any) -> None: ...


def with_context(payload: Any, ctx: Any) -> None: ...


def with_options(payload: Any, /, *, session: Any = None) -> None: ...


def bound_first(session: Any, payload: Any) -> None: ...


@pytest.mark.parametrize(
    ("function", "is_async", "takes_context"),
    [
        (plain_async, True, False),
        (with_context, False, True),
        (with_options, False, False),
        (Sender().send, True, False),
        (Sender().note, False, True),
        (Caller(), True, True),
        (functools.partial(bound_first, object()), False, False),
        (functools.partial(plain_async), True, False),
        (lambda _: None, False, False),
    ],
)
def test_a_handler_is_what_its_signature_says(
    function: Callable[..., Any], *, is_async: bool, takes_context: bool
) -> None:
    handler = Handler.of("send", function)

    assert (handler.executor is Executor.LOOP) is is_async
    assert handler.takes_context is takes_context


def nothing() -> None: ...


def too_much(payload: Any, ctx: Any, more: Any) -> None: ...


def optional_second(payload: Any, retries: int = 3) -> None: ...


def anything(*args: Any) -> None: ...


def keywords(payload: Any, **options: Any) -> None: ...


def required_keyword(payload: Any, *, session: Any) -> None: ...


@pytest.mark.parametrize(
    "function", [nothing, too_much, optional_second, anything, keywords, required_keyword]
)
def test_a_function_that_takes_something_else_is_refused(function: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"send must take \(payload\) or \(payload, ctx\)"):
        Handler.of("send", function)


def test_generators_are_refused() -> None:
    def generator(_: Any) -> Iterator[int]:
        yield 1

    async def async_generator(_: Any) -> AsyncIterator[int]:
        yield 1

    for function in (generator, async_generator):
        with pytest.raises(TypeError, match="generator"):
            Handler.of("send", function)


@pytest.mark.parametrize("type_", ["", "a b", "x" * 101, "grüße", "a\n"])
def test_a_type_that_is_no_name_is_refused(type_: str) -> None:
    with pytest.raises(ValueError, match="a task type must be 1 to 100"):
        Handler.of(type_, plain_async)


def test_a_forgotten_type_is_explained() -> None:
    with pytest.raises(TypeError, match="name the task's type"):
        Handler.of(plain_async, plain_async)  # type: ignore[arg-type]


def test_a_type_has_one_handler() -> None:
    handlers = Handlers()
    handlers.add(Handler.of("send", plain_async))

    with pytest.raises(ValueError, match="send has a handler already"):
        handlers.add(Handler.of("send", with_context))


def test_a_worker_has_at_most_as_many_types_as_it_may_ask_for() -> None:
    handlers = Handlers()
    for number in range(100):
        handlers.add(Handler.of(f"type-{number}", plain_async))

    with pytest.raises(ValueError, match="at most 100 task types"):
        handlers.add(Handler.of("one-more", plain_async))


def plain(_: dict[str, Any]) -> None: ...


def test_a_def_runs_in_a_thread_unless_it_asks_for_a_process() -> None:
    assert Handler.of("send", plain).executor is Executor.THREAD
    assert Handler.of("send", plain, executor="process").executor is Executor.PROCESS


def test_an_async_def_with_an_executor_is_refused() -> None:
    with pytest.raises(TypeError, match="it has no executor"):
        Handler.of("send", plain_async, executor="thread")


def test_an_unknown_executor_is_refused() -> None:
    with pytest.raises(ValueError, match='must be "thread" or "process", not \'loop\''):
        Handler.of("send", plain, executor="loop")  # type: ignore[arg-type]


@pytest.mark.parametrize("timeout", [timedelta(minutes=1), 60, 60.0], ids=repr)
def test_a_timeout_is_a_timedelta_or_seconds(timeout: timedelta | float) -> None:
    assert Handler.of("send", plain, timeout=timeout).timeout == 60.0


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), timedelta(0)], ids=repr)
def test_a_timeout_that_is_not_positive_and_finite_is_refused(timeout: timedelta | float) -> None:
    with pytest.raises(ValueError, match="timeout must be"):
        Handler.of("send", plain, timeout=timeout)
