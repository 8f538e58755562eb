"""The worker, as programs make and run it."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing.process
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

from ...domain.limits import DEFAULT_LEASE
from ...domain.ports import TaskQueue
from ...domain.requests import Settlement
from ..durations import as_span
from .handlers import ExecutorName, Handler, Handlers
from .outside import Outside, outside_of
from .plan import DEFAULT_CONCURRENCY, DEFAULT_GRACE, Plan
from .process import Process
from .running import Ending, Run
from .stopping import Stop, StopSwitch

_logger = logging.getLogger(__name__)

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")
_HOST_CHARACTERS: Final = 60


class Worker:
    """
    Leases tasks and runs their handlers.

        worker = leaseq.Worker("grpc://localhost:7480", queues=["emails"], concurrency=20)

        @worker.task("send_email")
        async def send_email(payload: dict, ctx: leaseq.TaskContext) -> None: ...

        if __name__ == "__main__":
            worker.run()

    A handler returns None or something that JSON can hold, which becomes the task's
    result. If it raises, the task is tried again after a while, until its attempts are
    used up; `Retry` and `PermanentFailure` say more.

    Args:
        url: where the tasks are: `grpc://host:port`, or a storage of this process.
        queues: which queues to serve; none: `default`.
        concurrency: how many tasks to run at once, 1 to 1000.
        lease_duration: for how long a task is this worker's, if it should vanish; a
            timedelta or seconds, 1 s to 12 h. Leases of running handlers are renewed at
            every third of it, from a process of their own, so it need not be as long as
            the longest handler.
        grace: how long handlers may go on after the worker was told to stop.
        outside: how to reach the queue, and time and luck, instead of what `url` says.

    Raises:
        InvalidArgumentError, ValueError: an argument is out of bounds.
    """

    def __init__(
        self,
        url: str,
        *,
        queues: Sequence[str] = (),
        concurrency: int = DEFAULT_CONCURRENCY,
        lease_duration: timedelta | float = DEFAULT_LEASE,
        grace: timedelta | float = DEFAULT_GRACE,
        outside: Outside | None = None,
    ) -> None:
        if isinstance(queues, str):
            raise TypeError(f"queues must be a list of names, not the text {queues!r}")
        self._plan = Plan(
            queues=tuple(queues),
            concurrency=concurrency,
            lease_duration=as_span("lease_duration", lease_duration),
            grace=as_span("grace", grace),
        )
        self._outside = outside or outside_of(url)
        self._handlers = Handlers()
        self._switch: StopSwitch | None = None
        self._run: Run | None = None

    def task(
        self,
        type_: str,
        *,
        executor: ExecutorName | None = None,
        timeout: timedelta | float | None = None,
    ) -> Callable[[_Function], _Function]:
        """
        Register the decorated function as the handler of a type of task.

        An `async def` runs on the worker's event loop, a `def` in a thread. It takes the
        payload, and if it has a second parameter also the TaskContext.

        Args:
            type_: the type of task.
            executor: "process" lets a `def` run in a process of its own, which is used
                again: it may crash, and can be killed.
            timeout: how long an attempt may take, as a timedelta or in seconds; then it
                has failed with the error `HandlerTimeout`. An `async def` is cancelled, a
                process killed. A thread cannot be stopped: it keeps its task until it ends.

        Raises:
            TypeError: the function takes something else, or an `async def` has an executor.
            ValueError: `type_` is no name, or has a handler already; another argument is
                out of bounds.
        """

        def register(function: _Function) -> _Function:
            self._handlers.add(Handler.of(type_, function, executor=executor, timeout=timeout))
            return function

        return register

    def run(self) -> None:
        """
        Work until SIGTERM or SIGINT.

        The first signal: nothing more is leased, what runs may finish within the grace
        period, the rest is given back (which counts as no attempt). The second: everything
        is given back at once. If then a `def` handler still runs, the process ends under
        it by `os._exit`.

        To be called on the main thread; elsewhere no signal is caught. In a program that
        configured no logging, what the worker does is told on the standard error.

        Raises:
            SystemExit: with code 1, if the queue could not be told what became of all
                tasks. Their leases run out by themselves.
            LoadError: a handler cannot be loaded in a process of its own.
        """
        # structlog is slow to import, and programs that only register handlers need none.
        from ..logs import heard  # noqa: PLC0415

        with (
            heard(),
            self._one_run() as switch,
            self._outside.open_blocking(self._beat_deadline) as blocking,
        ):
            process = Process(
                blocking=blocking,
                switch=switch,
                grace=self._plan.grace.total_seconds(),
                last_words=self._last_words,
            )
            code = process.run(lambda: self._main(switch, blocking, patient=False))
        if code:
            raise SystemExit(code)

    async def run_async(self) -> None:
        """
        Work until `stop` is called, on the running event loop; no signal is caught.

        Where Ctrl-C raises KeyboardInterrupt, and not what asyncio.run makes of the first one,
        one that strikes inside a handler is taken for that handler's.

        Returns when every handler has ended: a thread cannot be stopped, so this may be
        long after the grace period. Cancelling gives everything back at once, and leaves
        such a thread behind with its lease, which then runs out.
        """
        with (
            self._one_run() as switch,
            self._outside.open_blocking(self._beat_deadline) as blocking,
        ):
            main = asyncio.create_task(self._main(switch, blocking, patient=True))
            try:
                await asyncio.shield(main)
            except asyncio.CancelledError:
                switch.ask(Stop.LEAVE)
                await asyncio.wait({main})
                raise

    def stop(self, *, now: bool = False) -> None:
        """
        Let `run` or `run_async` end as after a signal. May be called from any thread.

        Args:
            now: give back what runs at once, as after a second signal.
        """
        switch = self._switch
        if switch is not None:
            switch.ask(Stop.GIVE_BACK if now else Stop.DRAIN)

    @contextmanager
    def _one_run(self) -> Iterator[StopSwitch]:
        if not self._handlers:
            raise RuntimeError('the worker has no handlers; register some with @worker.task("...")')
        if self._switch is not None:
            raise RuntimeError("the worker runs already")
        if getattr(multiprocessing.process.current_process(), "_inheriting", False):
            raise RuntimeError(
                "a process for handlers is importing this program, which runs the worker again;"
                ' call run() under `if __name__ == "__main__":` only'
            )
        self._switch = StopSwitch()
        try:
            yield self._switch
        finally:
            self._switch = self._run = None

    async def _main(self, switch: StopSwitch, blocking: TaskQueue, *, patient: bool) -> Ending:
        switch.attach()
        async with self._outside.open_async() as queue:
            self._run = Run(
                plan=self._plan,
                worker_id=new_worker_id(),
                handlers=self._handlers,
                outside=self._outside,
                queue=queue,
                blocking=blocking,
                switch=switch,
            )
            return await self._run.main(patient=patient)

    def _last_words(self) -> Sequence[Settlement]:
        run = self._run
        return run.last_words if run is not None else ()

    @property
    def _beat_deadline(self) -> timedelta:
        return timedelta(seconds=self._plan.beats.deadline)


def new_worker_id() -> str:
    """Return a name that no other start of a worker has."""
    host = _NO_NAME.sub("-", socket.gethostname())[:_HOST_CHARACTERS]
    return f"{host}-{os.getpid()}-{secrets.token_hex(4)}"
