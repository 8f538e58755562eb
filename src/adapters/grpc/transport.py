"""
How bytes reach a server: with an event loop, and without.

Every call has a deadline. One for which there is no connection fails as soon as that is known.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Protocol, cast

import grpc

from ..clock import steady_ns
from ..forks import FORKS
from .options import client_options
from .refusals import FailedCall, read_status, was_never_sent
from .status import Verdict


class CallFailedError(Exception):
    """
    A call was answered by a verdict, or the connection failed.

    Args:
        verdict: the answer, or what the connection says.
        never_sent: whether it is certain that no server saw the call.
    """

    def __init__(self, verdict: Verdict, *, never_sent: bool = False) -> None:
        self.verdict = verdict
        self.never_sent = never_sent
        super().__init__(verdict.message)


class Transport(Protocol):
    """Carries one request and its reply."""

    async def call(self, path: str, request: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109  gRPC counts it
        """
        Return the reply.

        Raises:
            CallFailedError: none came within `timeout` seconds, or a refusal did.
        """
        ...

    async def pause(self, seconds: float) -> None:
        """Let time pass."""
        ...

    def now(self) -> float:
        """Return seconds since some moment, the computer's sleep included."""
        ...


class AioTransport:
    """
    A `Transport` for callers on the event loop that made it.

    gRPC wants one such loop in a process; other threads use a `BlockingTransport`.
    """

    def __init__(self, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._target = target
        self._closed = False
        FORKS.remember(self)
        options = client_options()
        self._channel = (
            grpc.aio.insecure_channel(target, options)
            if credentials is None
            else grpc.aio.secure_channel(target, credentials, options)
        )

    async def call(self, path: str, request: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109  gRPC counts it
        """Return the reply; see `Transport.call`."""
        if FORKS.cut_in_two:
            raise _forked(self._target)
        if self._closed:
            raise _closed(self._target, never_sent=True)
        method: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = self._channel.unary_unary(path)
        try:
            return await method(request, timeout=timeout)
        except grpc.RpcError as error:
            raise _failed(error, self._target) from error
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                raise _closed(self._target) from None
            raise

    def forget(self) -> None:
        """Refuse calls, as the event loop is the parent's; see `Forgetful.forget`."""
        FORKS.keep(self._channel)
        if not self._closed:
            # A thread of gRPC's own is always in the middle of a call while there is a loop.
            FORKS.cut()

    async def pause(self, seconds: float) -> None:
        """Let time pass for this caller."""
        await asyncio.sleep(seconds)

    def now(self) -> float:
        """Return the time; see `Transport.now`."""
        return steady_ns() / 1e9

    async def close(self) -> None:
        """Cut off the calls that are under way, and refuse others."""
        self._closed = True
        await self._channel.close()


class BlockingTransport:
    """
    A `Transport` whose coroutines block their thread and never suspend.

    Any thread may use it, at the same time as others, and so may processes that are forked
    later: gRPC is not begun before the first call, and a child has a channel of its own.
    """

    def __init__(self, target: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self._target = target
        self._credentials = credentials
        self._closed = False
        self._channel: grpc.Channel | None = None
        self._lock = threading.Lock()
        FORKS.remember(self)

    def forget(self) -> None:
        """Leave the channel to the parent; see `Forgetful.forget`."""
        FORKS.keep(self._channel)
        self._channel = None
        self._lock = threading.Lock()

    async def call(self, path: str, request: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109  gRPC counts it
        """Return the reply; see `Transport.call`."""
        if FORKS.cut_in_two:
            raise _forked(self._target)
        try:
            with FORKS.call():
                method: grpc.UnaryUnaryMultiCallable[bytes, bytes]
                method = self._connected().unary_unary(path)
                return method(request, timeout=timeout)
        except grpc.RpcError as error:
            raise _failed(error, self._target) from error
        except ValueError:
            # What gRPC raises when another thread has closed the channel meanwhile.
            raise _closed(self._target) from None

    def _connected(self) -> grpc.Channel:
        with self._lock:
            if self._closed:
                raise _closed(self._target, never_sent=True)
            if self._channel is None:
                options = client_options()
                self._channel = (
                    grpc.insecure_channel(self._target, options)
                    if self._credentials is None
                    else grpc.secure_channel(self._target, self._credentials, options)
                )
            return self._channel

    async def pause(self, seconds: float) -> None:
        """Let time pass for this thread."""
        time.sleep(seconds)  # noqa: ASYNC251  no loop runs here

    def now(self) -> float:
        """Return the time; see `Transport.now`."""
        return steady_ns() / 1e9

    def close(self) -> None:
        """Cut off the calls that are under way, and refuse others."""
        with self._lock:
            self._closed = True
            if self._channel is not None:
                self._channel.close()


def _failed(error: grpc.RpcError, target: str) -> CallFailedError:
    # gRPC raises its errors as a class that does not say that it is the call as well.
    call = cast("FailedCall", error)
    return CallFailedError(read_status(call, target=target), never_sent=was_never_sent(call))


def _closed(target: str, *, never_sent: bool = False) -> CallFailedError:
    message = f"the connection to the leaseq server at {target} is closed"
    verdict = Verdict(code=grpc.StatusCode.CANCELLED, message=message)
    return CallFailedError(verdict, never_sent=never_sent)


def _forked(target: str) -> CallFailedError:
    message = (
        f"this process cannot call the leaseq server at {target}: it was forked in the middle of"
        " its parent's calls; fork while none is under way and no async client is open"
    )
    verdict = Verdict(code=grpc.StatusCode.CANCELLED, message=message)
    return CallFailedError(verdict, never_sent=True)
