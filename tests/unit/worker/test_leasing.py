import asyncio
from collections.abc import Sequence
from datetime import timedelta

import pytest

from leaseq.domain.errors import OverloadedError, StorageUnavailableError, TaskQueueError
from leaseq.domain.requests import HeartbeatRequest, LeaseRequest, NewTask, Settlement
from leaseq.domain.views import Beat, Enqueued, LeasedTask, TaskView
from leaseq.entrypoints.worker.leasing import WAIT, Arrival, Leasing, Slots
from leaseq.testing import FixedJitter
from worker_rig import ManualStopwatch, soon


class Server:
    """The far end of polls: answers as told, then stops the leasing."""

    def __init__(self) -> None:
        self.requests: list[LeaseRequest] = []
        self.answers: list[Exception | float] = []
        """Errors, or seconds after which an empty answer comes."""

        self.stopwatch = ManualStopwatch()
        self.exhausted = asyncio.Event()

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        self.requests.append(request)
        if not self.answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        self.stopwatch.advance(answer)
        return []

    async def heartbeat(self, request: HeartbeatRequest) -> list[Beat | TaskQueueError]:
        raise NotImplementedError(request)

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        raise NotImplementedError(settlements)

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        raise NotImplementedError(tasks)

    async def get(self, task_id: str) -> TaskView:
        raise NotImplementedError(task_id)


@pytest.fixture
async def server() -> Server:
    return Server()


async def pauses_of(server: Server, *answers: Exception | float) -> list[float]:
    """Lease until these answers are used up, and return how long was paused in between."""
    pauses: list[float] = []

    async def pause(span: timedelta) -> None:
        pauses.append(span.total_seconds())

    def receive(_: Arrival) -> int:
        raise AssertionError("nothing was leased")

    server.answers = list(answers)
    leasing = Leasing(
        queue=server,
        wanted=LeaseRequest(worker_id="worker-1"),
        slots=Slots(1),
        silent=lambda: False,
        receive=receive,
        stopwatch=server.stopwatch,
        jitter=FixedJitter(),
        pause=pause,
    )
    work = asyncio.create_task(leasing.work())
    await soon(server.exhausted.wait())
    leasing.stop()
    await soon(work)
    return pauses


async def test_an_empty_queue_is_polled_again_at_once_since_the_poll_has_waited(
    server: Server,
) -> None:
    wait = WAIT.total_seconds()

    assert await pauses_of(server, wait, wait, wait) == []
    assert [request.wait for request in server.requests] == [WAIT] * 4


async def test_a_server_that_does_not_wait_is_asked_less_and_less_often(server: Server) -> None:
    assert await pauses_of(server, 0, 0, 0) == [0.1, 0.2, 0.4]


async def test_errors_are_backed_off_and_forgotten_after_a_good_answer(server: Server) -> None:
    errors = [StorageUnavailableError("away"), OSError("reset")]

    pauses = await pauses_of(server, *errors, WAIT.total_seconds(), TimeoutError())

    assert pauses == [0.1, 0.2, 0.1]


async def test_an_overloaded_server_is_given_the_time_it_asks_for(server: Server) -> None:
    busy = OverloadedError("TOO_MANY_WAITERS", "busy", retry_after=timedelta(seconds=7))

    assert await pauses_of(server, busy) == [7]


async def test_leasing_outlives_thousands_of_failures(server: Server) -> None:
    pauses = await pauses_of(server, *[OSError("reset")] * 5000)

    assert len(pauses) == 5000
    assert max(pauses) == 5


async def test_errors_of_others_are_logged_by_class_only(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    await pauses_of(server, OSError("canary"), StorageUnavailableError("no route"))

    errors = [record.__dict__["error"] for record in caplog.records]
    assert errors == ["OSError", "StorageUnavailableError: no route"]
