"""How long a connection may take over what it does."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any, Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_WITHIN: Final = timedelta(seconds=10)
"""From the first byte of a request (or the connection) to the end of its head."""

IDLE_FOR: Final = timedelta(seconds=60)
"""Between two requests. More than proxies keep a connection in stock, as most of them do."""

_TAKEN_WITHIN: Final = timedelta(seconds=30)
"""Until a client has made room for more of an answer, or taken the last of it."""

HEAD_BYTES: Final = 16 * 1024


class BoundedConnection(H11Protocol):
    """
    A connection that ends when its client takes too long; uvicorn's waits for ever.

    A client that has closed its half after a whole request gets its answer.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_due: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin to wait for a head."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take what has come."""
        super().data_received(data)
        self._await_head()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn's never keeps its half open
        """Return whether there is still something to say."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if not answering or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Wind up."""
        self._forget_head()
        self.resume_writing()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Go on to the next request."""
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(_TAKEN_WITHIN.total_seconds(), self.transport.abort)
        elif self.conn.their_state is h11.SEND_BODY:
            # Who was answered before the end of the body may end it, but not for ever.
            self._await_head()

    def pause_writing(self) -> None:
        """Give the client a while to take what is there for it."""
        super().pause_writing()
        self._stuck = self.loop.call_later(_TAKEN_WITHIN.total_seconds(), self.transport.abort)

    def resume_writing(self) -> None:
        """Go on."""
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
        super().resume_writing()

    def _await_head(self) -> None:
        answered = self.cycle is None or self.cycle.response_complete
        if not (answered and self.conn.their_state in {h11.IDLE, h11.SEND_BODY}):
            self._forget_head()
        elif self._head_due is None:
            self._head_due = self.loop.call_later(HEAD_WITHIN.total_seconds(), self.transport.close)

    def _forget_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None
