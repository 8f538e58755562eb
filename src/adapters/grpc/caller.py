"""Calls with deadlines, repeated where that is harmless."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs
import grpc
from google.protobuf.message import DecodeError

from ...domain.errors import StorageError
from ...domain.ports import Jitter
from .methods import Method, Q, R
from .status import DRAINING, Verdict, error_of
from .transport import CallFailedError, Transport

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0


@attrs.frozen(kw_only=True)
class Caller:
    """Calls methods through a transport, and raises refusals as the domain's errors."""

    _transport: Transport
    _jitter: Jitter

    async def call(
        self, method: Method[Q, R], request: Q, *, within: timedelta, repeatable: bool
    ) -> R:
        """
        Return the reply.

        A call that a server which shuts down did not begin is made again; a
        `repeatable` one also after any other failure that may pass. All tries and the
        pauses between them take no longer than `within`.

        Raises:
            TaskQueueError: what the server refused with.
            StorageUnavailableError: no answer came in time.
        """
        raw = request.SerializeToString()
        deadline = self._transport.now() + within.total_seconds()
        pause = _FIRST_PAUSE
        while True:
            left = deadline - self._transport.now()
            try:
                reply = await self._transport.call(method.path, raw, timeout=max(0.0, left))
                return method.reply.FromString(reply)
            except CallFailedError as failed:
                wait = pause * (1 + self._jitter.draw())
                left = deadline - self._transport.now()
                if left <= wait or not _may_repeat(failed.verdict, repeatable=repeatable):
                    raise error_of(failed.verdict) from failed
            except DecodeError:
                raise StorageError(f"the reply to {method.path} cannot be read") from None
            await self._transport.pause(wait)
            pause = min(2 * pause, _LONGEST_PAUSE)


def _may_repeat(verdict: Verdict, *, repeatable: bool) -> bool:
    if verdict.code is not grpc.StatusCode.UNAVAILABLE:
        return False
    return repeatable or verdict.reason == DRAINING.reason
