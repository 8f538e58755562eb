"""
Reports what handlers did, in batches.

One call is under way at a time; what comes meanwhile travels in the next one. So a lone
outcome is sent at once, and a storm of them costs few calls, without any timer.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from datetime import timedelta
from enum import Enum, auto
from typing import Final

import attrs

from ...domain.errors import (
    InvalidArgumentError,
    LeaseLostError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from ...domain.limits import MAX_BATCH, MAX_MESSAGE_TEXT_BYTES
from ...domain.ports import Jitter, TaskQueue
from ...domain.requests import Complete, Fail, LeaseRef, Settlement
from ...domain.retry import RetryPolicy
from . import outcome
from .log import describe
from .outside import Pause

_logger = logging.getLogger(__name__)

_BYTES_BESIDE_TEXT: Final = 512
_BACKOFF: Final = RetryPolicy(base=timedelta(milliseconds=50), cap=timedelta(seconds=2))


class Report(Enum):
    """What became of a report."""

    TAKEN = auto()
    REFUSED = auto()
    """The lease was lost, or the queue will never take this."""

    GIVEN_UP = auto()
    """The lease ran out before anybody took it."""


@attrs.define(eq=False)
class _Waiting:
    settlement: Settlement
    report: asyncio.Future[Report]


class Settler:
    """Reports settlements until they are taken, refused or given up. For one event loop."""

    def __init__(
        self,
        queue: TaskQueue,
        *,
        worker_id: str,
        deadline: timedelta,
        jitter: Jitter,
        pause: Pause,
    ) -> None:
        self._queue = queue
        self._worker_id = worker_id
        self._deadline = deadline
        self._jitter = jitter
        self._pause = pause
        self._waiting: dict[LeaseRef, _Waiting] = {}
        self._filled = asyncio.Event()

    async def report(self, settlement: Settlement) -> Report:
        """Report one settlement, and return what became of it; needs `work` to run."""
        future: asyncio.Future[Report] = asyncio.get_running_loop().create_future()
        self._waiting[settlement.ref] = _Waiting(settlement, future)
        self._filled.set()
        return await future

    def give_up(self, ref: LeaseRef) -> None:
        """Report nothing any more about a lease that has run out."""
        self._answer(ref, Report.GIVEN_UP)

    async def work(self) -> None:
        """Send what waits, until cancelled."""
        failures = 0
        while True:
            await self._filled.wait()
            # After a failure smaller calls, lest one report that cannot travel holds up the rest.
            most = max(1, MAX_BATCH >> min(failures, MAX_BATCH.bit_length()))
            if await self._send(_one_call(self._waiting.values(), most)):
                failures = 0
            else:
                failures += 1
                await self._pause(_BACKOFF.delay(failures, jitter=self._jitter.draw()))

    async def _send(self, batch: list[_Waiting]) -> bool:
        settlements = [waiting.settlement for waiting in batch]
        try:
            async with asyncio.timeout(self._deadline.total_seconds()):
                answers = await self._queue.settle(settlements)
        except Exception as error:  # noqa: BLE001  whatever the transport raises, it is tried again
            self._log_failure("outcomes could not be reported", len(batch), error)
            self._move_back(batch)
            return False
        unsettled = [
            answer
            for waiting, answer in zip(batch, answers, strict=True)
            if not self._take_answer(waiting, answer)
        ]
        if unsettled and unsettled[0] is not None:
            self._log_failure("outcomes were not taken yet", len(unsettled), unsettled[0])
        return not unsettled

    def _move_back(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            ref = waiting.settlement.ref
            if self._waiting.pop(ref, None) is not None:
                self._waiting[ref] = waiting

    def _log_failure(self, message: str, tasks: int, error: Exception) -> None:
        extra = {"worker_id": self._worker_id, "tasks": tasks, "error": describe(error)}
        _logger.warning(message, extra=extra)

    def _take_answer(self, waiting: _Waiting, answer: TaskQueueError | None) -> bool:
        """Act on the answer to one report, and return whether it was the last word on it."""
        ref = waiting.settlement.ref
        match answer:
            case None:
                self._answer(ref, Report.TAKEN)
                return True
            case LeaseLostError() | TaskNotFoundError() | UnreadableTaskError():
                self._log_refusal(ref, answer)
                self._answer(ref, Report.REFUSED)
                return True
            case InvalidArgumentError():
                self._log_refusal(ref, answer)
                instead = outcome.of_refusal(waiting.settlement, answer)
                if instead is None:
                    self._answer(ref, Report.REFUSED)
                else:
                    waiting.settlement = instead
                return True
            case _:
                return False

    def _log_refusal(self, ref: LeaseRef, answer: TaskQueueError) -> None:
        _logger.error(
            "outcome refused",
            extra={
                "worker_id": self._worker_id,
                "task_id": ref.task_id,
                "error": type(answer).__name__,
            },
        )

    def _answer(self, ref: LeaseRef, report: Report) -> None:
        waiting = self._waiting.pop(ref, None)
        if waiting is not None and not waiting.report.done():
            waiting.report.set_result(report)
        if not self._waiting:
            self._filled.clear()


def _one_call(waiting: Iterable[_Waiting], most: int) -> list[_Waiting]:
    batch: list[_Waiting] = []
    room = MAX_MESSAGE_TEXT_BYTES
    for each in waiting:
        room -= _size(each.settlement)
        if batch and (room < 0 or len(batch) == most):
            break
        batch.append(each)
    return batch


def _size(settlement: Settlement) -> int:
    match settlement:
        case Complete(result=text):
            # At least: only what is not ASCII takes more, and up to four bytes a character.
            size = len(text) if text.isascii() else len(text.encode())
        case Fail(error=error):
            size = 4 * (len(error.type) + len(error.message) + len(error.traceback))
        case _:
            size = 0
    return size + _BYTES_BESIDE_TEXT
