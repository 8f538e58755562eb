"""
`leaseq server`: one asyncio process that serves a storage over gRPC and HTTP.

It stops in this order: health and readiness say so, HTTP accepts nothing more, waiting
Leases are answered empty, calls in flight finish, the loops end, the storage is closed.
All of that is bounded.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

import attrs

from ..adapters.grpc.server import GrpcServer
from ..domain.errors import StorageUnavailableError
from ..domain.ids import QueueName
from ..domain.limits import DEFAULT_QUEUE
from .container import Services, http_server, open_services
from .extras import MissingExtraError
from .fitness import Fitness
from .loops import Supervisor, upkeep
from .settings import DEFAULT_GRPC, ServerSettings
from .urls import Address

if TYPE_CHECKING:
    from ..adapters.http.server import HttpServer

_log: Final = logging.getLogger(__name__)

_HEALTH_EVERY: Final = timedelta(seconds=1)
_FIRST_PAUSE: Final = timedelta(milliseconds=250)
_LONGEST_PAUSE: Final = timedelta(seconds=5)
_BEYOND_GRACE: Final = timedelta(seconds=2)
"""For what has to be wound up after the calls."""


@attrs.frozen(kw_only=True)
class Addresses:
    """Where a server serves."""

    grpc: Address
    http: Address | None = None


Announce = Callable[[Addresses], None]


class Server:
    """A server from its start to its end, for one event loop."""

    def __init__(self, settings: ServerSettings, *, announce: Announce) -> None:
        self._settings = settings
        self._announce = announce
        self._stopping = asyncio.Event()
        self._starting: asyncio.Task[None] | None = None

    def stop(self) -> None:
        """Begin to stop; a start that is under way is broken off."""
        self._stopping.set()
        if self._starting is not None:
            self._starting.cancel()

    async def run(self) -> None:
        """
        Serve until `stop`, with one announcement when calls are welcome.

        Raises:
            StorageError: the storage cannot be opened, or is away for too long.
            MissingExtraError: HTTP was asked for, and is not installed.
            OSError: nobody can listen at an address that was asked for.
        """
        async with AsyncExitStack() as stack:
            self._starting = asyncio.current_task()
            try:
                doors = await self._start(stack)
            except asyncio.CancelledError:
                if not self._stopping.is_set():
                    raise
                return
            finally:
                self._starting = None
            await self._stopping.wait()
            _log.info("stopping")
            await doors.drain(self._settings.grace)
        _log.info("stopped")

    async def _start(self, stack: AsyncExitStack) -> _Doors:
        services = await self._open_storage(stack)
        loops = upkeep(
            services.maintenance, services.storage, reaper_interval=self._settings.reaper_interval
        )
        supervisor = Supervisor(loops, jitter=services.jitter)
        await stack.enter_async_context(supervisor.running())
        fitness = Fitness(loops=supervisor.reports, query=partial(_small_query, services))
        stack.push_async_callback(fitness.close)
        http, http_address = await self._start_http(stack, services, fitness)
        grpc = GrpcServer(
            queue=services.queue,
            undo=services.queue,
            admin=services.admin,
            reflection=self._settings.reflection,
        )
        address = await _listening(grpc, self._settings.grpc)
        telling = asyncio.create_task(
            tell_fitness(
                supervisor.unfit,
                tell=lambda fit: grpc.set_serving(serving=fit),
                pause=lambda: asyncio.sleep(_HEALTH_EVERY.total_seconds()),
            )
        )
        stack.callback(telling.cancel)
        self._announce(Addresses(grpc=address, http=http_address))
        return _Doors(grpc=grpc, http=http, fitness=fitness)

    async def _start_http(
        self, stack: AsyncExitStack, services: Services, fitness: Fitness
    ) -> tuple[HttpServer | None, Address | None]:
        wish = self._settings.http
        asked = wish.address
        if asked is None:
            return None, None
        try:
            http = http_server(services, checks=fitness.checks, names=self._settings.http_hosts)
            port = await http.start(asked.host, asked.port)
        except MissingExtraError:
            if wish.asked_for:
                raise
            return None, None
        except OSError as error:
            why = f"cannot listen on {asked} for HTTP: {_words(error)}"
            if wish.asked_for:
                raise OSError(why) from error
            _log.warning("HTTP is not served: %s; --http chooses another address", why)
            return None, None
        stack.push_async_callback(http.drain, timedelta(0))
        return http, Address(host=asked.host, port=port)

    async def _open_storage(self, stack: AsyncExitStack) -> Services:
        url = self._settings.storage
        give_up_at = time.monotonic() + self._settings.storage_wait.total_seconds()
        pause = _FIRST_PAUSE
        while True:
            try:
                return await stack.enter_async_context(open_services(url))
            except StorageUnavailableError as error:
                left = give_up_at - time.monotonic()
                if left <= 0:
                    raise
                _log.warning(
                    "storage is away; trying again",
                    extra={"storage": str(url), "error": str(error), "seconds_left": round(left)},
                )
                await asyncio.sleep(min(pause.total_seconds(), left))
                pause = min(pause * 2, _LONGEST_PAUSE)


@attrs.frozen(kw_only=True)
class _Doors:
    grpc: GrpcServer
    http: HttpServer | None
    fitness: Fitness

    async def drain(self, grace: timedelta) -> None:
        """Let nobody in any more, and everybody out."""
        self.fitness.stopping()
        async with asyncio.TaskGroup() as draining:
            # At once, so that what one waits for takes no time from the other.
            if self.http is not None:
                draining.create_task(self.http.drain(grace))
            draining.create_task(self.grpc.drain(grace))


async def _small_query(services: Services) -> None:
    await services.storage.queues.load(QueueName(DEFAULT_QUEUE))


async def _listening(grpc: GrpcServer, asked: Address) -> Address:
    try:
        return Address(host=asked.host, port=await grpc.start(str(asked)))
    except OSError as error:
        raise OSError(f"cannot listen on {asked}: {_why_not(asked) or error}") from error


def _why_not(asked: Address) -> str | None:
    # gRPC does not say what the operating system said.
    family = socket.AF_INET6 if ":" in asked.host else socket.AF_INET
    try:
        socket.create_server((asked.host, asked.port), family=family).close()
    except OSError as error:
        return _words(error)
    return None


def _words(error: OSError) -> str | None:
    if isinstance(error, socket.gaierror) or not error.errno:
        return error.strerror
    return os.strerror(error.errno)


async def tell_fitness(
    unfit: Callable[[], str | None],
    *,
    tell: Callable[[bool], Awaitable[None]],
    pause: Callable[[], Awaitable[None]],
) -> None:
    """
    Tell whether the process is fit to serve whenever that changes, for ever.

    Args:
        unfit: why it is not; None: it is, as it is taken to be in the beginning.
        pause: waits between two looks.
    """
    told: str | None = None
    while True:
        reason = unfit()
        if (reason is None) != (told is None):
            if reason is None:
                _log.info("fit to serve again")
            else:
                _log.error("unfit to serve", extra={"reason": reason})
            await tell(reason is None)
        told = reason
        await pause()


def start_line(settings: ServerSettings, addresses: Addresses) -> str:
    """Return where the server is, where its tasks are, and what to try next."""
    address = addresses.grpc
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.host, address.host)  # noqa: S104
    server = Address(host=reachable, port=address.port)
    option = "" if server == DEFAULT_GRPC else f" --server {server}"
    http = "" if addresses.http is None else f"HTTP on {addresses.http}, "
    return (
        f"leaseq serves gRPC on {address}, {http}its tasks are in {settings.storage};"
        f" try: leaseq enqueue{option} --type hello"
    )


def run_server(settings: ServerSettings, *, announce: Announce) -> None:
    """
    Serve until SIGTERM or SIGINT; a second one ends the process at once.

    Raises:
        StorageError: as for `Server.run`.
        MissingExtraError: as for `Server.run`.
        OSError: as for `Server.run`.
    """
    asyncio.run(_run(settings, announce))


async def _run(settings: ServerSettings, announce: Announce) -> None:
    server = Server(settings, announce=announce)
    signals = _Signals(server, stop_within=settings.grace + _BEYOND_GRACE)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, signals.receive, number)
    await server.run()


class _Signals:
    """Stops a server at the first signal, and the process at the second or when time is up."""

    def __init__(self, server: Server, *, stop_within: timedelta) -> None:
        self._server = server
        self._stop_within = stop_within
        self._received = False

    def receive(self, number: int) -> None:
        if self._received:
            os._exit(128 + number)
        self._received = True
        # A thread, as the event loop may be what does not stop.
        timer = threading.Timer(self._stop_within.total_seconds(), _end_process)
        timer.daemon = True
        timer.start()
        self._server.stop()


def _end_process() -> None:
    _log.error("did not stop in time; ended without closing the storage")
    os._exit(1)
