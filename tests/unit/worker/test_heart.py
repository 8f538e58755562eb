import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from leaseq.domain.errors import (
    LeaseLostError,
    LostReason,
    StorageUnavailableError,
    TaskQueueError,
)
from leaseq.domain.ports import TaskQueue
from leaseq.domain.requests import HeartbeatRequest, LeaseRef, LeaseRequest, NewTask, Settlement
from leaseq.domain.views import Beat, Enqueued, LeasedTask, TaskView
from leaseq.entrypoints.worker.context import StopReason
from leaseq.entrypoints.worker.heart import Heart
from leaseq.entrypoints.worker.ledger import Hold, plan_beats
from leaseq.entrypoints.worker.moment import Moment
from leaseq.testing import FixedJitter, a_task_id
from worker_rig import SOON, ManualStopwatch

LEASE = 30.0
PLAN = plan_beats(timedelta(seconds=LEASE))
ONE = LeaseRef(task_id=a_task_id(1), lease_token="token-1")
BEAT = Beat(lease_duration=timedelta(seconds=LEASE), cancel_requested=False)
Answer = Beat | TaskQueueError


class Server:
    """The far end of heartbeats: answers each as `answer` says, in the thread that asks."""

    def __init__(self) -> None:
        self.requests: list[HeartbeatRequest] = []
        self.answer: Callable[[LeaseRef], Answer] = lambda _: BEAT
        self.before: Callable[[], None] = lambda: None

    async def heartbeat(self, request: HeartbeatRequest) -> list[Answer]:
        self.requests.append(request)
        self.before()
        return [self.answer(ref) for ref in request.leases]

    async def lease(self, request: LeaseRequest) -> list[LeasedTask]:
        raise NotImplementedError(request)

    async def settle(self, settlements: Sequence[Settlement]) -> list[TaskQueueError | None]:
        raise NotImplementedError(settlements)

    async def enqueue(self, tasks: Sequence[NewTask]) -> list[Enqueued | TaskQueueError]:
        raise NotImplementedError(tasks)

    async def get(self, task_id: str) -> TaskView:
        raise NotImplementedError(task_id)


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def stopwatch() -> ManualStopwatch:
    return ManualStopwatch()


@pytest.fixture
def told() -> list[tuple[LeaseRef, StopReason]]:
    return []


@pytest.fixture
def heart(
    server: Server, stopwatch: ManualStopwatch, told: list[tuple[LeaseRef, StopReason]]
) -> Heart:
    return a_heart(server, stopwatch, told, spawn=lambda work: work())


def a_heart(
    queue: TaskQueue,
    stopwatch: Callable[[], Moment],
    told: list[tuple[LeaseRef, StopReason]],
    *,
    spawn: Callable[[Callable[[], None]], object],
) -> Heart:
    return Heart(
        queue,
        worker_id="worker-1",
        plan=PLAN,
        tell=lambda verdict: told.append((verdict.ref, verdict.reason)),
        watch=lambda _: None,
        stopwatch=stopwatch,
        jitter=FixedJitter(),
        spawn=spawn,
    )


def hold(heart: Heart, stopwatch: ManualStopwatch) -> None:
    heart.hold([Hold(ref=ONE, anchor=stopwatch(), remaining=LEASE)])


def test_a_beat_names_the_worker_its_leases_and_their_length(
    heart: Heart, server: Server, stopwatch: ManualStopwatch
) -> None:
    hold(heart, stopwatch)
    stopwatch.advance(PLAN.period)

    heart.turn()

    assert server.requests == [
        HeartbeatRequest(
            worker_id="worker-1", leases=(ONE,), lease_duration=timedelta(seconds=LEASE)
        )
    ]


def test_a_held_lease_lives_on_by_its_beats(
    heart: Heart,
    server: Server,
    stopwatch: ManualStopwatch,
    told: list[tuple[LeaseRef, StopReason]],
) -> None:
    hold(heart, stopwatch)

    for _ in range(100):
        stopwatch.advance(1.0)
        heart.turn()

    assert told == []
    assert len(server.requests) == 10


def test_tiny_tasks_cost_no_beats(heart: Heart, server: Server, stopwatch: ManualStopwatch) -> None:
    for number in range(1000):
        ref = LeaseRef(task_id=a_task_id(number), lease_token="t")
        heart.hold([Hold(ref=ref, anchor=stopwatch(), remaining=LEASE)])
        stopwatch.advance(0.1)
        heart.turn()
        heart.drop(ref)

    assert server.requests == []


def test_a_lost_lease_is_told(
    heart: Heart,
    server: Server,
    stopwatch: ManualStopwatch,
    told: list[tuple[LeaseRef, StopReason]],
) -> None:
    server.answer = lambda _: LeaseLostError(a_task_id(1), LostReason.LEASE_EXPIRED)
    hold(heart, stopwatch)
    stopwatch.advance(PLAN.period)

    heart.turn()
    stopwatch.advance(PLAN.period)
    heart.turn()

    assert told == [(ONE, StopReason.LEASE_LOST)]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "error",
    [StorageUnavailableError("away"), RuntimeError("INTERNAL"), ValueError("malformed bytes")],
    ids=["unavailable", "internal", "malformed"],
)
def test_any_error_of_a_beat_is_outlived(
    heart: Heart,
    server: Server,
    stopwatch: ManualStopwatch,
    told: list[tuple[LeaseRef, StopReason]],
    error: Exception,
) -> None:
    def break_twice() -> None:
        if len(server.requests) <= 2:
            raise error

    server.before = break_twice
    hold(heart, stopwatch)

    for _ in range(60):
        stopwatch.advance(1.0)
        heart.turn()

    assert told == []


def test_a_lease_time_of_failures_stops_leasing_and_handlers_until_somebody_answers(
    heart: Heart,
    server: Server,
    stopwatch: ManualStopwatch,
    told: list[tuple[LeaseRef, StopReason]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    def break_() -> None:
        raise StorageUnavailableError("away")

    server.before = break_
    hold(heart, stopwatch)
    for _ in range(30):
        stopwatch.advance(1.0)
        heart.turn()
    assert told == [(ONE, StopReason.LEASE_LOST)]
    assert heart.silent

    server.before = lambda: None
    stopwatch.advance(PLAN.retry)
    heart.turn()

    assert not heart.silent
    assert server.requests[-1].leases == ()
    assert "no heartbeat landed for a whole lease; leasing stops until one does" in caplog.messages
    assert "heartbeats land again" in caplog.messages


def test_beats_that_hang_do_not_hold_up_the_next_ones(
    server: Server, stopwatch: ManualStopwatch, told: list[tuple[LeaseRef, StopReason]]
) -> None:
    hanging: list[Callable[[], None]] = []
    heart = a_heart(server, stopwatch, told, spawn=hanging.append)
    hold(heart, stopwatch)
    for _ in range(2):
        stopwatch.advance(PLAN.period)
        heart.turn()
    assert len(hanging) == 2

    hanging[1]()
    stopwatch.advance(PLAN.period * 2)
    heart.turn()

    assert told == []


def test_beats_that_hang_for_ever_do_not_pile_up(
    server: Server, stopwatch: ManualStopwatch, told: list[tuple[LeaseRef, StopReason]]
) -> None:
    hanging: list[Callable[[], None]] = []
    heart = a_heart(server, stopwatch, told, spawn=hanging.append)
    hold(heart, stopwatch)

    for _ in range(10 * 30):
        stopwatch.advance(1.0)
        heart.turn()

    assert heart.silent
    assert 10 <= len(hanging) <= 41


def test_after_a_suspend_a_lease_is_lost_although_the_steady_clock_stood_still(
    heart: Heart, stopwatch: ManualStopwatch, told: list[tuple[LeaseRef, StopReason]]
) -> None:
    hold(heart, stopwatch)
    stopwatch.advance_apart(steady=0.5, wall=LEASE)

    heart.turn()

    assert told == [(ONE, StopReason.LEASE_LOST)]


def test_a_heart_beats_in_its_own_thread_until_it_is_left(server: Server) -> None:
    landed = threading.Event()
    server.before = landed.set
    stopwatch = ManualStopwatch()
    heart = a_heart(server, stopwatch, [], spawn=lambda work: work())

    with heart:
        hold(heart, stopwatch)
        stopwatch.advance(PLAN.period)
        assert landed.wait(SOON)

    assert "leaseq-heart" not in [thread.name for thread in threading.enumerate()]


def test_a_stumble_does_not_stop_the_heart(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    turns = threading.Semaphore(0)

    def broken_clock() -> Moment:
        turns.release()
        raise OSError("no clock")

    with a_heart(server, broken_clock, [], spawn=lambda work: work()):
        assert turns.acquire(timeout=SOON)
        assert turns.acquire(timeout=SOON)

    assert "heart stumbled" in caplog.messages


def test_what_a_beat_learns_after_the_end_is_told_to_nobody(
    server: Server, stopwatch: ManualStopwatch, told: list[tuple[LeaseRef, StopReason]]
) -> None:
    late: list[Callable[[], None]] = []
    heart = a_heart(server, stopwatch, told, spawn=late.append)
    server.answer = lambda _: LeaseLostError(a_task_id(1), LostReason.LEASE_EXPIRED)
    with heart:
        hold(heart, stopwatch)
        stopwatch.advance(PLAN.period)
        heart.turn()

    for beat in late:
        beat()

    assert told == []


def test_a_queue_that_is_not_blocking_is_noticed(
    stopwatch: ManualStopwatch,
    told: list[tuple[LeaseRef, StopReason]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Suspending(Server):
        async def heartbeat(self, request: HeartbeatRequest) -> list[Answer]:
            await asyncio.sleep(0)
            return await super().heartbeat(request)

    heart = a_heart(Suspending(), stopwatch, told, spawn=lambda work: work())
    hold(heart, stopwatch)
    stopwatch.advance(PLAN.period)

    heart.turn()

    assert "heartbeat failed" in caplog.messages
