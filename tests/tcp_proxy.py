"""A proxy on 127.0.0.1 that can fall silent, hang up, or be away."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


class TcpProxy:
    """Forwards connections to another port, as long as it is there and not silent."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._asking, self._answering = asyncio.Event(), asyncio.Event()
        self.talk_again()
        self._server: asyncio.Server | None = None
        self._pumps: set[asyncio.Task[None]] = set()
        self.port = 0

    async def come(self) -> None:
        """Listen, at the same port as before if there was one."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def leave(self) -> None:
        """Hang up on everybody and refuse new connections."""
        if self._server is not None:
            self._server.close()
        for pump in list(self._pumps):
            pump.cancel()
        if self._pumps:
            await asyncio.wait(set(self._pumps))

    def fall_silent(self) -> None:
        """Keep connections open, take new ones, and forward nothing either way."""
        self._asking.clear()
        self._answering.clear()

    def swallow_answers(self) -> None:
        """Forward what is asked, and nothing back."""
        self._answering.clear()

    def talk_again(self) -> None:
        """Forward again, what was held back too."""
        self._asking.set()
        self._answering.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection(*self._target)
        for source, sink, open_ in (
            (reader, back, self._asking),
            (there, writer, self._answering),
        ):
            pump = asyncio.create_task(_pump(source, sink, open_))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)


async def _pump(
    source: asyncio.StreamReader, sink: asyncio.StreamWriter, open_: asyncio.Event
) -> None:
    try:
        with suppress(ConnectionError):
            while data := await source.read(65536):
                await open_.wait()
                sink.write(data)
                await sink.drain()
    finally:
        sink.close()


@asynccontextmanager
async def proxied(host: str, port: int) -> AsyncIterator[TcpProxy]:
    """Forward to (host, port) for the length of the block."""
    proxy = TcpProxy(host, port)
    await proxy.come()
    try:
        yield proxy
    finally:
        await proxy.leave()
