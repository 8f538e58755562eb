"""Calls with deadlines, repeated where that is harmless."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs
import grpc
from google.protobuf.message import DecodeError

from ...domain.errors import NotSentError, StorageError, StorageUnavailableError, TaskQueueError
from ...domain.ports import Jitter
from .methods import Method, Q, R
from .status import DRAINING, error_of
from .transport import CallFailedError, Transport

_FIRST_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 2.0
_LONGEST_PAUSE_UNSENT: Final = 0.2
"""Between looks for a connection, which cost nothing."""

HOPE: Final = timedelta(seconds=3)
"""For how long a caller waits for somebody to listen at all: a server that restarts, say."""


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

        A call that no server began, as none listened or the one that did shuts down, is
        made again; a `repeatable` one also after any other failure that may pass. All tries
        and the pauses between them take no longer than `within`, and no longer than
        `HOPE` while nobody listens.

        Raises:
            TaskQueueError: what the server refused with.
            NotSentError: nobody listens, so that nothing was done.
            StorageUnavailableError: no answer came in time.
        """
        raw = request.SerializeToString()
        tries = _Tries(deadline=self._transport.now() + within.total_seconds())
        while True:
            left = tries.deadline - self._transport.now()
            try:
                reply = await self._transport.call(method.path, raw, timeout=max(0.0, left))
                return method.reply.FromString(reply)
            except CallFailedError as failed:
                wait = tries.pause(failed) * (1 + self._jitter.draw())
                left = tries.end(failed, now=self._transport.now()) - self._transport.now()
                if left <= wait or not _may_repeat(failed, repeatable=repeatable):
                    raise tries.error(failed) from failed
            except DecodeError:
                raise StorageError(f"the reply to {method.path} cannot be read") from None
            await self._transport.pause(wait)


@attrs.define(kw_only=True)
class _Tries:
    """The tries of one call: how long until the next, and until when there are any."""

    deadline: float
    _next_pause: float = _FIRST_PAUSE
    _unheard_since: float | None = None
    _seen: bool = False

    def error(self, failed: CallFailedError) -> TaskQueueError:
        error = error_of(failed.verdict)
        if self._seen or not isinstance(error, StorageUnavailableError):
            return error
        return NotSentError(str(error))

    def pause(self, failed: CallFailedError) -> float:
        self._seen = self._seen or not _undone(failed)
        pause = self._next_pause
        longest = _LONGEST_PAUSE_UNSENT if failed.never_sent else _LONGEST_PAUSE
        self._next_pause = min(2 * pause, longest)
        return pause

    def end(self, failed: CallFailedError, *, now: float) -> float:
        if not failed.never_sent:
            self._unheard_since = None
            return self.deadline
        if self._unheard_since is None:
            self._unheard_since = now
        return min(self.deadline, self._unheard_since + HOPE.total_seconds())


def _may_repeat(failed: CallFailedError, *, repeatable: bool) -> bool:
    if failed.verdict.code is not grpc.StatusCode.UNAVAILABLE:
        return False
    return repeatable or _undone(failed)


def _undone(failed: CallFailedError) -> bool:
    return failed.never_sent or failed.verdict.reason == DRAINING.reason
