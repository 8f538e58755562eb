"""The user's functions, by the type of task they are for."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final, Literal, Self

import attrs

from ...domain.limits import MAX_NAMES_PER_LEASE, NAME_PATTERN
from ..durations import as_span
from .context import TaskContext

_NAME: Final = re.compile(NAME_PATTERN)
_POSITIONAL: Final = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
}


class LoadError(Exception):
    """There is no worker under a name, or a handler cannot be loaded; the text says why."""


class Executor(StrEnum):
    """Where a handler runs."""

    LOOP = "loop"
    """An `async def`, on the worker's event loop."""

    THREAD = "thread"
    PROCESS = "process"


ExecutorName = Literal["thread", "process"]
"""What a `def` may ask for."""


@attrs.frozen(kw_only=True)
class Handler:
    """A function for one type of task."""

    type: str
    function: Callable[..., Any]
    executor: Executor
    takes_context: bool
    timeout: float | None = None
    """Seconds that an attempt may take; None: as long as it likes."""

    @classmethod
    def of(
        cls,
        type_: str,
        function: Callable[..., Any],
        *,
        executor: ExecutorName | None = None,
        timeout: timedelta | float | None = None,
    ) -> Self:
        """
        Return the handler that `function` makes.

        Args:
            executor: where a `def` runs; None: in a thread.
            timeout: what an attempt may take, as a timedelta or in seconds; None: no bound.

        Raises:
            TypeError: it cannot be called with a payload, or with a payload and a context;
                an `async def` has an executor.
            ValueError: `type_` is no name, `executor` none, or `timeout` not positive.
        """
        if not isinstance(type_, str):
            raise TypeError(f'name the task\'s type: @worker.task("..."), not {type_!r}')
        if not _NAME.fullmatch(type_):
            raise ValueError(
                f"a task type must be 1 to 100 of the characters A-Z a-z 0-9 . _ : -, not {type_!r}"
            )
        if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
            raise TypeError(f"the handler of {type_} must not be a generator function")
        return cls(
            type=type_,
            function=function,
            executor=_executor(type_, function, executor),
            takes_context=_takes_context(type_, function),
            timeout=None if timeout is None else _timeout(timeout),
        )

    def call(self, payload: Any, context: TaskContext) -> Any:
        """Call the function; of an `async def` this gives the coroutine."""
        return self.function(payload, context) if self.takes_context else self.function(payload)


class Handlers(Mapping[str, Handler]):
    """The handlers of one worker, by type."""

    def __init__(self) -> None:
        self._by_type: dict[str, Handler] = {}

    def __getitem__(self, type_: str) -> Handler:
        """Return the handler of a type."""
        return self._by_type[type_]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the types, in the order of registration."""
        return iter(self._by_type)

    def __len__(self) -> int:
        """Return how many types have a handler."""
        return len(self._by_type)

    def add(self, handler: Handler) -> None:
        """
        Register a handler.

        Raises:
            ValueError: its type has one already; there are 100 types.
        """
        if handler.type in self._by_type:
            raise ValueError(f"the task type {handler.type} has a handler already")
        if len(self._by_type) >= MAX_NAMES_PER_LEASE:
            raise ValueError(f"a worker has handlers for at most {MAX_NAMES_PER_LEASE} task types")
        self._by_type[handler.type] = handler


def _is(test: Callable[[object], bool], function: Callable[..., Any]) -> bool:
    # A callable object is what its `__call__` is.
    return test(function) or test(getattr(function, "__call__", None))  # noqa: B004


def _executor(type_: str, function: Callable[..., Any], name: ExecutorName | None) -> Executor:
    if _is(inspect.iscoroutinefunction, function):
        if name is not None:
            raise TypeError(f"the handler of {type_} is an `async def`: it has no executor")
        return Executor.LOOP
    if name not in {None, "thread", "process"}:
        raise ValueError(f'executor must be "thread" or "process", not {name!r}')
    return Executor(name or "thread")


def _timeout(timeout: timedelta | float) -> float:
    seconds = as_span("timeout", timeout).total_seconds()
    if seconds <= 0:
        raise ValueError(f"timeout must be positive, not {timeout!r}")
    return seconds


def _takes_context(type_: str, function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"the handler of {type_} has no signature that can be read") from None
    places = [p for p in parameters if p.kind in _POSITIONAL]
    rest = [p for p in parameters if p.kind not in _POSITIONAL]
    fits = (
        1 <= len(places) <= 2  # noqa: PLR2004  the payload, the context
        and all(p.default is p.empty for p in places[1:])
        and all(p.kind is p.KEYWORD_ONLY and p.default is not p.empty for p in rest)
    )
    if not fits:
        raise TypeError(
            f"the handler of {type_} must take (payload) or (payload, ctx);"
            " anything else must be keyword-only and have a default"
        )
    return len(places) > 1
