"""
What happens around every call: counted, read, refused where it must be, written.

Messages are read and written here and not by gRPC, which answers a malformed message with
UNKNOWN and a traceback.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, Generic, NoReturn, TypeAlias, TypeVar

import attrs
import grpc
from google.protobuf.message import DecodeError

from ...domain.errors import StorageError, TaskQueueError
from .methods import Method, Q, R
from .refusals import write_status
from .status import DRAINING, INTERNAL, MALFORMED, Verdict, verdict_on
from .trouble import StorageTrouble

A = TypeVar("A")

Context: TypeAlias = "grpc.aio.ServicerContext[bytes, bytes]"
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

_A_MOMENT: Final = 0.05
"""Seconds; what has reached this computer by then has also reached a handler."""

_log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Parcel(Generic[R]):
    """A reply that must not be lost without a trace."""

    reply: R
    if_lost: Callable[[], Awaitable[None]]
    """Undoes what the reply tells of, for a caller that has gone."""


class Calls:
    """The calls that one server is answering."""

    def __init__(self) -> None:
        self._draining = False
        self._trouble = StorageTrouble()
        self.in_flight = 0
        """Calls whose handlers run."""

        self._begun = 0
        self._none_in_flight = asyncio.Event()
        self._none_in_flight.set()

    def refuse_new(self) -> None:
        """Answer UNAVAILABLE to every call that has not begun."""
        self._draining = True

    async def finished(self, *, within: timedelta) -> bool:
        """Return whether all calls, with all that their handlers do, have ended in time."""
        try:
            async with asyncio.timeout(within.total_seconds()):
                await self._none_in_flight.wait()
        except TimeoutError:
            return False
        return True

    async def quiet(self, *, within: timedelta) -> None:
        """Return when no call has begun for a moment, or time is up."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + within.total_seconds()
        begun = -1
        while begun != self._begun and loop.time() < ends_at:
            begun = self._begun
            await asyncio.sleep(_A_MOMENT)

    def replying(self, method: Method[Q, R], behaviour: Callable[[Q], Awaitable[R]]) -> Handler:
        """Return the handler of a method that answers by what `behaviour` returns."""

        async def handle(raw: bytes, context: Context) -> bytes:
            with self._counted():
                reply = await self._answer(method, behaviour, raw, context)
                return reply.SerializeToString()

        return grpc.unary_unary_rpc_method_handler(handle)

    def delivering(
        self, method: Method[Q, R], behaviour: Callable[[Q, timedelta | None], Awaitable[Parcel[R]]]
    ) -> Handler:
        """
        Return the handler of a method whose reply must be delivered or undone.

        `behaviour` is also told how much time the caller has left, if it said so.
        """

        async def handle(raw: bytes, context: Context) -> None:
            async def patient(request: Q) -> Parcel[R]:
                return await behaviour(request, _time_left(context))

            with self._counted():
                parcel = await self._answer(method, patient, raw, context)
                try:
                    await context.write(parcel.reply.SerializeToString())
                except BaseException:  # cancelled, or the connection is gone
                    await parcel.if_lost()
                    raise

        # A handler of one reply never learns whether it was sent. On the wire a stream of one
        # message is the same, and its handler sends it by itself.
        return grpc.unary_stream_rpc_method_handler(handle)

    async def _answer(
        self,
        method: Method[Q, R],
        behaviour: Callable[[Q], Awaitable[A]],
        raw: bytes,
        context: Context,
    ) -> A:
        if self._draining:
            await _refuse(context, DRAINING)
        try:
            answer = await behaviour(method.request.FromString(raw))
        except DecodeError:
            verdict = MALFORMED
        except StorageError as error:
            self._trouble.failed(method.path, error)
            verdict = verdict_on(error)
        except TaskQueueError as error:
            verdict = verdict_on(error)
            if verdict.code is grpc.StatusCode.INTERNAL:
                _log.warning("%s failed: %s", method.path, error)
        except Exception:  # noqa: BLE001  whatever happens, the call is answered
            # The caller learns nothing of what may be a secret.
            _log.exception("%s failed", method.path)
            verdict = INTERNAL
        else:
            self._trouble.succeeded(method.path)
            return answer
        return await _refuse(context, verdict)

    @contextmanager
    def _counted(self) -> Iterator[None]:
        self._begun += 1
        self.in_flight += 1
        self._none_in_flight.clear()
        try:
            yield
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._none_in_flight.set()


async def _refuse(context: Context, verdict: Verdict) -> NoReturn:
    await context.abort_with_status(write_status(verdict))


def _time_left(context: Context) -> timedelta | None:
    seconds = context.time_remaining()
    return None if seconds is None else timedelta(seconds=seconds)
