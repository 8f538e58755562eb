"""
The HTTP door on an event loop that others use as well.

Of uvicorn the protocol is used and not its `Server`, which takes over signals, ends the
process when an address is taken, and wakes up ten times a second.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import socket
from collections.abc import Collection
from contextlib import suppress
from datetime import timedelta
from typing import Final

from uvicorn.config import Config
from uvicorn.server import ServerState

from ...domain.ports import Clock, TaskQueue
from .app import Endpoints, make_app
from .connections import HEAD_BYTES, IDLE_FOR, BoundedConnection
from .health import Checks
from .hosts import Hosts

_LAST_WORDS: Final = timedelta(seconds=0.5)
"""For answers to leave after the last one was given."""

_STRAGGLERS_GET: Final = timedelta(seconds=5)
"""To wind up, after their requests were cut off at the end of the grace period."""

_A_MOMENT: Final = 0.01
_BACKLOG: Final = 1024


class HttpServer:
    """
    Enqueue, look and health, on one address.

    Args:
        clock: the one that validation goes by.
        checks: asked at each `/readyz`.
        names: of this server, beside those of loopback.
    """

    def __init__(
        self, *, queue: TaskQueue, clock: Clock, checks: Checks, names: Collection[str] = ()
    ) -> None:
        self._endpoints = Endpoints(queue=queue, clock=clock, checks=checks)
        self._names = frozenset(name.lower() for name in names)
        self._state = ServerState()
        self._listener: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """
        Serve on `host` (a name or an address) and return the port; 0 takes a free one.

        Raises:
            OSError: nobody can listen there.
        """
        listening = await _listening(host, port)
        address = listening.getsockname()[0]
        hosts = Hosts(names=self._names, loopback=ipaddress.ip_address(address).is_loopback)
        self._gate = make_app(self._endpoints, hosts=hosts)
        config = Config(
            self._gate,
            http=BoundedConnection,
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level=logging.CRITICAL,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=int(IDLE_FOR.total_seconds()),
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
        config.load()
        self._listener = await asyncio.get_running_loop().create_server(
            lambda: BoundedConnection(config=config, server_state=self._state, app_state={}),
            sock=listening,
            backlog=_BACKLOG,
        )
        return int(listening.getsockname()[1])

    @property
    def in_flight(self) -> int:
        """How many requests are being answered."""
        return len(self._state.tasks)

    async def drain(self, grace: timedelta) -> None:
        """
        Stop, and return when no request is being answered any more.

        Nothing is accepted, connections without a request end, requests get `grace` to
        finish and are then cut off (503).
        """
        if self._listener is None:
            return
        self._gate.draining = True
        self._listener.close()
        for connection in list(self._state.connections):
            if not connection.transport.is_closing():
                connection.shutdown()
        await self._finished(within=grace)
        for task in list(self._state.tasks):
            task.cancel()
        await self._finished(within=_STRAGGLERS_GET)
        await self._hung_up(within=_LAST_WORDS)
        self._listener = None

    async def _finished(self, *, within: timedelta) -> None:
        if self._state.tasks:
            await asyncio.wait(list(self._state.tasks), timeout=within.total_seconds())

    async def _hung_up(self, *, within: timedelta) -> None:
        # Nobody tells when the last of them ended.
        with suppress(TimeoutError):
            async with asyncio.timeout(within.total_seconds()):
                while self._state.connections:  # noqa: ASYNC110
                    await asyncio.sleep(_A_MOMENT)
        for connection in list(self._state.connections):
            connection.transport.abort()


async def _listening(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    family, _, _, _, address = (
        await loop.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_NUMERICSERV
        )
    )[0]
    dual = host == "::" and socket.has_dualstack_ipv6()
    return socket.create_server(
        address[:2], family=socket.AddressFamily(family), dualstack_ipv6=dual, backlog=_BACKLOG
    )
