"""
A storage held by this process: one thread with an event loop of its own.

There is one `Host` for a storage, however many clients and workers use it, and it
lasts as long as somebody holds it. It also runs the loops that somebody has to run. In a
process that was forked it opens its storage anew, with a thread of that process.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Future, InvalidStateError
from contextlib import asynccontextmanager, contextmanager, suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

import attrs

from ..adapters.forks import FORKS
from ..domain.errors import StorageError, StorageUnavailableError
from .container import Services, open_services
from .loops import Supervisor, upkeep
from .urls import MemoryUrl, SqliteUrl, StorageUrl

T = TypeVar("T")
Work = Coroutine[Any, Any, T]
Undeliverable = Callable[[T], Work[None]]
"""What to do with a result whose caller is gone."""

_log: Final = logging.getLogger(__name__)

_REAPER_INTERVAL: Final = timedelta(seconds=5)
_END_WITHIN: Final = timedelta(seconds=10)


class Host:
    """The services of one storage, on an event loop in a thread of its own."""

    def __init__(self, url: StorageUrl) -> None:
        self.url = url
        self._starting = threading.Lock()
        self._forked = False
        self._inherited = False
        self._begin()
        FORKS.remember(self)

    def _begin(self) -> None:
        self.opened: Future[Services] = Future()
        """Settled once: the services, or why there are none."""

        self.ended: Future[None] = Future()
        """Done when the storage is closed."""

        self._loop = asyncio.new_event_loop()
        self._leaving = asyncio.Event()
        self._opening: asyncio.Task[None] | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._undeliverable: set[asyncio.Task[None]] = set()
        # A daemon: who forgets to close a client can still end the program.
        self._thread = threading.Thread(target=self._run, name="leaseq-host", daemon=True)

    def start(self) -> None:
        """Begin to open the storage."""
        self._thread.start()

    def forget(self) -> None:
        """Leave everything to the parent, until there is a call; see `Forgetful.forget`."""
        FORKS.keep(dict(vars(self)))
        self._starting = threading.Lock()
        self._forked = self._inherited = True

    def here(self) -> Future[Services]:
        """
        Return `opened`, having opened the storage anew if this process was forked.

        Raises:
            StorageError: it is the memory of another process.
        """
        with self._starting:
            if self._inherited or (self._forked and self._failed):
                if isinstance(self.url, MemoryUrl):
                    raise StorageError(
                        f"{self.url} is in the memory of the process that this one was forked"
                        " from; what processes share needs a file, a database or a server"
                    )
                self._begin()
                self._inherited = False
                self.start()
            return self.opened

    def leave(self) -> None:
        """Begin to close the storage; calls that are under way are broken off."""
        if self._inherited:
            return
        with suppress(RuntimeError):  # it has ended by itself
            self._loop.call_soon_threadsafe(self._leave)

    def join(self) -> None:
        """Wait, within bounds, until the thread has ended."""
        # A client may be collected, and so closed, by any thread: by this one too.
        if self._inherited or threading.current_thread() is self._thread:
            return
        self._thread.join(_END_WITHIN.total_seconds())
        if self._thread.is_alive():
            _log.warning("storage takes long to close", extra={"storage": str(self.url)})

    @property
    def usable(self) -> bool:
        """Whether it is open, or may yet be, or may be opened anew in this process."""
        if self._inherited:
            return not isinstance(self.url, MemoryUrl)
        return not (self._failed or self.ended.done())

    @property
    def _failed(self) -> bool:
        return self.opened.done() and self.opened.exception() is not None

    def submit(self, work: Work[T], undeliverable: Undeliverable[T] | None = None) -> Future[T]:
        """
        Carry out `work` on the host's loop, for a caller on any thread.

        Raises:
            StorageUnavailableError: the host has ended.
        """
        handed: Future[T] = Future()
        try:
            self._loop.call_soon_threadsafe(self._start, work, handed, undeliverable)
        except RuntimeError:
            work.close()
            raise _closed() from None
        return handed

    def abandon(self, handed: Future[T], undeliverable: Undeliverable[T] | None) -> None:
        """
        Give up waiting for a call: it is cancelled, or its result handled as undeliverable.

        Of the two exactly one happens, as a future is cancelled or settled but never both.
        """
        if handed.cancel() or handed.exception() is not None or undeliverable is None:
            return
        with suppress(StorageUnavailableError):  # leases that cannot be undone expire
            self.submit(undeliverable(handed.result()))

    # --- on the host's thread

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
                runner.run(self._live())
        except asyncio.CancelledError:
            self._could_not_open(_closed())
        except BaseException as error:  # noqa: BLE001  the last stop of this thread
            if not self._could_not_open(error):
                _log.exception("host died", extra={"storage": str(self.url)})
        finally:
            self.ended.set_result(None)

    def _could_not_open(self, error: BaseException) -> bool:
        if self.opened.done():
            return False
        self.opened.set_exception(error)
        return True

    async def _live(self) -> None:
        self._opening = asyncio.current_task()
        async with open_services(self.url) as services:
            loops = upkeep(services.maintenance, services.storage, reaper_interval=_REAPER_INTERVAL)
            async with Supervisor(loops, jitter=services.jitter).running():
                self.opened.set_result(services)
                await self._leaving.wait()
                await self._break_off_calls()

    def _leave(self) -> None:
        self._leaving.set()
        if not self.opened.done() and self._opening is not None:
            self._opening.cancel()

    async def _break_off_calls(self) -> None:
        for call in self._calls:
            call.cancel()
        while pending := self._calls | self._undeliverable:
            await asyncio.wait(pending)

    def _start(
        self, work: Work[T], handed: Future[T], undeliverable: Undeliverable[T] | None
    ) -> None:
        if self._leaving.is_set():
            work.close()
            _settle(handed, _closed())
            return
        call = asyncio.create_task(self._carry_out(work, handed, undeliverable))
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        handed.add_done_callback(lambda future: self._cancel(call) if future.cancelled() else None)

    def _cancel(self, call: asyncio.Task[None]) -> None:
        with suppress(RuntimeError):  # the loop has ended, and the call with it
            self._loop.call_soon_threadsafe(call.cancel)

    async def _carry_out(
        self, work: Work[T], handed: Future[T], undeliverable: Undeliverable[T] | None
    ) -> None:
        try:
            result = await work
        except asyncio.CancelledError:
            _settle(handed, _closed())
            raise
        except BaseException as error:  # noqa: BLE001  it is the caller's
            _settle(handed, error)
            return
        try:
            handed.set_result(result)
        except InvalidStateError:
            if undeliverable is not None:
                # A task apart: the cancelling of this one is still on its way.
                task = asyncio.create_task(undeliverable(result))
                self._undeliverable.add(task)
                task.add_done_callback(self._undeliverable.discard)


def _settle(handed: Future[T], error: BaseException) -> None:
    with suppress(InvalidStateError):  # its caller is gone
        handed.set_exception(error)


def _closed() -> StorageUnavailableError:
    return StorageUnavailableError("the storage was closed by its last user")


# --- who holds which host


@attrs.define
class _Hold:
    host: Host
    holders: int = 0


@attrs.define(eq=False)
class _Hosts:
    """The hosts of this process, by what they hold."""

    _holds: dict[StorageUrl, _Hold] = attrs.field(factory=dict)
    _lock: threading.Lock = attrs.field(factory=threading.Lock)

    def __attrs_post_init__(self) -> None:
        """Take part in forks: the holds are the child's as well, their lock is not."""
        FORKS.remember(self)

    def forget(self) -> None:
        """Be free; see `Forgetful.forget`."""
        self._lock = threading.Lock()

    def take(self, url: StorageUrl) -> Host:
        """Return the host of `url`, started if it was not there."""
        with self._lock:
            hold = self._holds.get(url)
            if hold is None or not hold.host.usable:
                hold = _Hold(Host(url))
                self._holds[url] = hold
                hold.host.start()
            hold.holders += 1
            return hold.host

    def give_back(self, host: Host) -> bool:
        """Let go of a host, and say whether it is leaving now because nobody holds it."""
        with self._lock:
            hold = self._holds.get(host.url)
            if hold is None or hold.host is not host:
                return False  # replaced by another, since it had failed
            hold.holders -= 1
            if hold.holders:
                return False
            del self._holds[host.url]
        host.leave()
        return True


_HOSTS: Final = _Hosts()


@asynccontextmanager
async def hosted_async(url: StorageUrl) -> AsyncIterator[Host]:
    """
    Hold the host of `url`; waits on the running loop until it is open.

    Raises:
        StorageError: it cannot be opened.
    """
    host = _HOSTS.take(_absolute(url))
    try:
        # Others wait for the same futures, so a caller that is cancelled must not cancel them.
        await asyncio.shield(asyncio.wrap_future(host.here()))
        yield host
    finally:
        if _HOSTS.give_back(host):
            await asyncio.shield(asyncio.to_thread(host.join))


@contextmanager
def hosted(url: StorageUrl) -> Iterator[Host]:
    """
    Hold the host of `url`; blocks until it is open.

    Raises:
        StorageError: it cannot be opened.
    """
    host = _HOSTS.take(_absolute(url))
    try:
        host.here().result()
        yield host
    finally:
        if _HOSTS.give_back(host):
            host.join()


def _absolute(url: StorageUrl) -> StorageUrl:
    return SqliteUrl(path=url.path.resolve()) if isinstance(url, SqliteUrl) else url
