"""
Handlers in processes of their own, each used again and again.

One process for a slot, with a pipe of its own: a handler that crashes, exits, is killed for
want of memory or takes too long costs its attempt and nothing else. Processes are spawned,
never forked: gRPC and threads do not survive a fork. Each is the head of a process group, so
that Ctrl-C in a terminal does not reach it, and what it starts is killed along with it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, Final

import attrs

from ...domain.requests import Settlement
from ...domain.views import LeasedTask
from . import outcome
from .context import StopReason
from .executors import attempt_blocking
from .handlers import Executor, Handler, LoadError
from .held import Held

_PATIENCE: Final = {StopReason.SHUTDOWN: 0.5, StopReason.CANCEL_REQUESTED: 5.0}
"""Seconds that a handler gets to end after it was told to; for other reasons it gets none."""

_LOOK_EVERY: Final = 0.5
"""A pipe may be kept open by what a dead process has left behind."""

_ENDS_WITHIN: Final = 1.0
_SIGNALS: Final = frozenset({signal.SIGINT, signal.SIGTERM})
_PR_SET_PDEATHSIG: Final = 1
"""Of `prctl(2)`, on Linux."""

_HINT: Final = (
    "A handler for processes must be a function at the top level of a module that can be"
    " imported; where that is the main program, it must call run() under"
    ' `if __name__ == "__main__":` only'
)


@attrs.frozen(kw_only=True)
class _Stop:
    """Why the handler under a lease should stop."""

    lease_token: str = attrs.field(repr=False)
    reason: StopReason


@attrs.frozen(kw_only=True)
class _Fault:
    """Why there are no handlers in a process; it says None if there are."""

    text: str


class HandlerProcesses:
    """
    As many processes as are needed at once, made one by one. For use from any thread.

    Raises:
        LoadError: another process could not find a handler by its name.
    """

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = _by_name(handlers)
        self._idle: list[_Child] = []
        self._all: set[_Child] = set()
        self._lock = threading.Lock()
        self._closed = False

    def start_first(self) -> None:
        """
        Make a first process, and wait until it can be used.

        Raises:
            LoadError: a handler cannot be loaded in it, or it ended as it started.
        """
        child = self._made()
        try:
            child.load()
        except BaseException:
            self._discard(child)
            raise
        self._idle.append(child)

    def attempt(self, held: Held, begun: Callable[[], None]) -> Settlement:
        """Run a handler in a process, and return what it did; `begun` is called as it begins."""
        try:
            child = self._idle_one() or self._made()
        except OSError as error:
            return outcome.of_error(held.ref, error, held.context.cancel_reason)
        settlement = child.attempt(held, begun)
        if child.usable and not self._closed:
            self._idle.append(child)
        else:
            self._discard(child)
        return settlement

    def _idle_one(self) -> _Child | None:
        with suppress(IndexError):
            while not (child := self._idle.pop()).usable:
                self._discard(child)
            return child
        return None

    def close(self) -> None:
        """End every process; what still runs is killed."""
        self._closed = True
        with self._lock:
            children = list(self._all)
        for child in children:
            child.ask_to_end()
        for child in children:
            self._discard(child)

    def _made(self) -> _Child:
        child = _Child(self._handlers)
        with self._lock:
            self._all.add(child)
        return child

    def _discard(self, child: _Child) -> None:
        child.end()
        with self._lock:
            self._all.discard(child)


def _by_name(handlers: Mapping[str, Handler]) -> dict[str, bytes]:
    """Return each handler as another process can load it."""
    names = {}
    for handler in handlers.values():
        if handler.executor is not Executor.PROCESS:
            continue
        try:
            names[handler.type] = pickle.dumps(handler)
        except Exception as error:
            fault = f"the handler of {handler.type} cannot be found from another process"
            raise LoadError(f"{fault}: {error}. {_HINT}") from error
    return names


# --- one process, as the worker holds it


class _Child:
    """A process that runs one handler at a time."""

    def __init__(self, handlers: Mapping[str, bytes]) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(theirs, handlers, os.getpid()), name="leaseq-handler"
        )
        self._loaded = False
        self._died = self._buried = False
        self._attempt: Held | None = None
        self._lock = threading.Lock()
        self._sending = threading.Lock()
        # It would unblock the signals in the midst of the start.
        resource_tracker.ensure_running()
        with theirs, _STARTING, _signals_blocked():
            self._process.start()

    @property
    def usable(self) -> bool:
        """Whether it can run another handler."""
        return self._loaded and not self._died and self._process.is_alive()

    def load(self) -> None:
        """
        Wait until its handlers are loaded.

        Raises:
            LoadError: they cannot be, or it ended.
        """
        try:
            said = self._heard()
        except Exception:  # noqa: BLE001  whatever comes through the pipe of a dying process
            raise LoadError(
                f"a process for handlers {self._bury()} as it started;"
                f" the standard error may tell why. {_HINT}"
            ) from None
        if isinstance(said, _Fault):
            raise LoadError(f"{said.text}. {_HINT}")
        self._loaded = True

    def attempt(self, held: Held, begun: Callable[[], None]) -> Settlement:
        """Run a handler, and return what it did, or how the process ended under it."""
        with self._lock:
            self._attempt = held
        try:
            held.told_by(lambda reason: self._tell(held, reason))
            if not self._loaded:
                self.load()
            begun()
            with self._sending:
                self._pipe.send(held.leased)
            # What it was told before that did not reach it.
            reason = held.context.cancel_reason
            if reason is not None:
                self._tell(held, reason)
            settlement: Settlement = self._heard()
        except LoadError as error:
            self._died = True
            return outcome.of_error(held.ref, error, held.context.cancel_reason)
        except Exception:  # noqa: BLE001  as above
            return outcome.of_death(held.ref, self._bury(), held.context.cancel_reason)
        else:
            return settlement
        finally:
            with self._lock:
                self._attempt = None

    def _heard(self) -> Any:
        while not self._pipe.poll(_LOOK_EVERY):
            if not self._process.is_alive() and not self._pipe.poll(0):
                raise EOFError
        return self._pipe.recv()

    def _tell(self, held: Held, reason: StopReason) -> None:
        """Pass on why to stop, and see to it that the handler does. Keeps nobody waiting."""
        patience = _PATIENCE.get(reason, 0.0) if self._loaded else 0.0
        if not patience:
            self._kill(held)
            return
        self._say(_Stop(lease_token=held.ref.lease_token, reason=reason))
        timer = threading.Timer(patience, self._kill, (held,))
        timer.daemon = True
        timer.start()

    def _say(self, message: _Stop | None) -> None:
        # While an attempt is being sent, `attempt` will look again.
        if self._sending.acquire(blocking=False):
            try:
                with suppress(OSError):  # it is gone, as `attempt` will notice
                    self._pipe.send(message)
            finally:
                self._sending.release()

    def _kill(self, held: Held) -> None:
        with self._lock:
            if self._attempt is held:
                self._kill_group()

    def _kill_group(self) -> None:
        pid = self._process.pid
        # Once it was waited for, its number may be somebody else's.
        if pid is not None and not self._buried:
            with suppress(ProcessLookupError, PermissionError):  # it has no group yet, or is gone
                os.killpg(pid, signal.SIGKILL)
        self._process.kill()

    def _kill_for_good(self) -> None:
        with self._lock:
            self._kill_group()
            self._process.join()
            self._buried = True

    def _bury(self) -> str:
        """See it dead, and what it has started too; return how it ended, in words."""
        self._died = True
        self._process.join(_ENDS_WITHIN)
        code = self._process.exitcode
        self._kill_for_good()
        if code is None:
            return "closed its connection and was killed"
        return f"was killed by {_signal_name(-code)}" if code < 0 else f"exited with code {code}"

    def ask_to_end(self) -> None:
        """Let it end by itself, if it runs no handler."""
        self._say(None)

    def end(self) -> None:
        """End it, by force if it does not end soon."""
        with self._lock:
            idle = self._attempt is None
        self._process.join(_ENDS_WITHIN if idle and self.usable else 0)
        self._kill_for_good()
        if idle:
            self._pipe.close()


_STARTING: Final = threading.Lock()
"""`multiprocessing` starts one process at a time."""


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Let a process start without hearing signals, which it would die of before it is ready."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


# --- the same process, from within


def _serve(pipe: Connection, handlers: Mapping[str, bytes], parent: int) -> None:
    _stand_apart(parent)
    loaded: dict[str, Handler] = {}
    for type_, name in handlers.items():
        try:
            loaded[type_] = pickle.loads(name)  # noqa: S301  the parent wrote it
        except BaseException as error:  # noqa: BLE001  a module may raise anything when imported
            what = f"the handler of {type_} cannot be loaded in a process"
            pipe.send(_Fault(text=f"{what}: {type(error).__name__}: {error}"))
            return
    inbox: SimpleQueue[Held | None] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, inbox), daemon=True).start()
    pipe.send(None)
    while (held := inbox.get()) is not None:
        pipe.send(attempt_blocking(loaded[held.context.type], held))


def _stand_apart(parent: int) -> None:
    """Live in a group of one's own, hear no signal to stop, and die with the parent."""
    with suppress(PermissionError):
        os.setpgid(0, 0)
    if sys.platform == "linux":
        # The end of the pipe tells too, but not while a call into C keeps Python's lock.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    # Not ignored: that would be inherited by programs which handlers start.
    for number in _SIGNALS:
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def _listen(pipe: Connection, inbox: SimpleQueue[Held | None]) -> None:
    held: Held | None = None
    while True:
        try:
            message = pipe.recv()
        except (EOFError, OSError):
            # The worker is gone, and the lease with it: whoever gets the task finds nobody here.
            os.killpg(0, signal.SIGKILL)
        match message:
            case LeasedTask() as leased:
                held = Held.of(leased)
                inbox.put(held)
            case _Stop(lease_token=token, reason=reason):
                if held is not None and held.ref.lease_token == token:
                    held.context.tell(reason)
            case None:
                inbox.put(None)
                return
