from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import grpc
import pytest
from google.protobuf.message import Message

from leaseq.adapters.grpc import methods
from leaseq.adapters.grpc.admin_client import GrpcTaskAdmin
from leaseq.adapters.grpc.caller import HOPE, Caller
from leaseq.adapters.grpc.client import GrpcTaskQueue
from leaseq.adapters.grpc.enqueues import Enqueues, Sender
from leaseq.adapters.grpc.generated import queue_pb2 as pb
from leaseq.adapters.grpc.merging import AioMerger
from leaseq.adapters.grpc.reply_codec import write_enqueued, write_leased_task
from leaseq.adapters.grpc.shelter import NoShelter
from leaseq.adapters.grpc.status import DRAINING, Verdict, verdict_on
from leaseq.adapters.grpc.transport import CallFailedError
from leaseq.adapters.ids import RandomIds
from leaseq.domain.errors import (
    InvalidArgumentError,
    NotSentError,
    StorageError,
    StorageUnavailableError,
    TaskNotFoundError,
)
from leaseq.domain.ids import LeaseToken
from leaseq.domain.requests import (
    Complete,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
)
from leaseq.domain.views import Enqueued, LeasedTask
from leaseq.entrypoints.client import TaskCalls
from leaseq.entrypoints.connection import Connection
from leaseq.testing import CountingIds, FixedJitter
from wire_values import EVERYTHING, TASK_ID

AWAY = CallFailedError(Verdict(code=grpc.StatusCode.UNAVAILABLE, message="away"))
UNHEARD = CallFailedError(AWAY.verdict, never_sent=True)
TOO_LATE = CallFailedError(Verdict(code=grpc.StatusCode.DEADLINE_EXCEEDED, message="too late"))
STOPPING = CallFailedError(DRAINING)
REF = LeaseRef(task_id=TASK_ID, lease_token="token")
TIMEOUT = timedelta(seconds=10)

Answer = Message | CallFailedError | Callable[[bytes], Message]


class ScriptedTransport:
    """Answers calls from a list; time passes only by pauses, and by `slowness` a call."""

    def __init__(self, *answers: Answer, slowness: float = 0.0) -> None:
        self._answers = list(answers)
        self._slowness = slowness
        self._now = 1000.0
        self.calls: list[str] = []
        self.requests: list[bytes] = []
        self.timeouts: list[float] = []
        self.pauses: list[float] = []

    async def call(self, path: str, request: bytes, *, timeout: float) -> bytes:  # noqa: ASYNC109
        self.calls.append(path)
        self.requests.append(request)
        self.timeouts.append(timeout)
        self._now += self._slowness
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, CallFailedError):
            raise answer
        message = answer if isinstance(answer, Message) else answer(request)
        return message.SerializeToString()

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self._now += seconds

    def now(self) -> float:
        return self._now


def a_queue(transport: ScriptedTransport) -> GrpcTaskQueue:
    caller = Caller(transport=transport, jitter=FixedJitter())
    sender = Sender(caller=caller, timeout=TIMEOUT)
    merger = AioMerger(sender.send, within=TIMEOUT)
    return GrpcTaskQueue(
        enqueues=Enqueues(ids=RandomIds(), send=sender.send, send_merged=merger.submit),
        caller=caller,
        transport=transport,
        ids=CountingIds(),
        shelter=NoShelter(),
        timeout=TIMEOUT,
    )


def all_done(request: bytes) -> pb.SettleResponse:
    settlements = pb.SettleRequest.FromString(request).settlements
    return pb.SettleResponse(results=[pb.SettleResult() for _ in settlements])


def all_created(request: bytes) -> pb.EnqueueBatchResponse:
    enqueued = pb.EnqueueResult(ok=write_enqueued(Enqueued(task=EVERYTHING, created=True)))
    tasks = pb.EnqueueBatchRequest.FromString(request).tasks
    return pb.EnqueueBatchResponse(results=[enqueued for _ in tasks])


async def test_each_lease_call_has_a_name_of_its_own() -> None:
    transport = ScriptedTransport(pb.LeaseResponse())
    queue = a_queue(transport)

    await queue.lease(LeaseRequest(worker_id="w"))
    await queue.lease(LeaseRequest(worker_id="w"))

    first, second = map(pb.LeaseRequest.FromString, transport.requests)
    assert first.call_id
    assert second.call_id
    assert first.call_id != second.call_id


async def test_a_settle_is_repeated_until_a_server_answers() -> None:
    transport = ScriptedTransport(AWAY, AWAY, STOPPING, all_done)

    answers = await a_queue(transport).settle([Complete(ref=REF)])

    assert answers == [None]
    assert transport.calls == [methods.SETTLE.path] * 4
    assert transport.pauses == [0.05, 0.1, 0.2]


async def test_a_call_that_no_server_saw_is_made_again_for_a_while() -> None:
    transport = ScriptedTransport(UNHEARD, UNHEARD, UNHEARD, UNHEARD, all_created)

    [answer] = await a_queue(transport).enqueue([NewTask(type="t")])

    assert isinstance(answer, Enqueued)
    assert transport.pauses == [0.05, 0.1, 0.2, 0.2]


@pytest.mark.parametrize("number", [1, 2])
async def test_callers_learn_within_seconds_that_nobody_listens(number: int) -> None:
    transport = ScriptedTransport(UNHEARD)

    with pytest.raises(NotSentError, match="away; nothing was stored"):
        await a_queue(transport).enqueue([NewTask(type="t")] * number)

    assert 2.5 < sum(transport.pauses) <= HOPE.total_seconds()


@pytest.mark.parametrize("others", [(TOO_LATE,), (AWAY, UNHEARD), (UNHEARD, AWAY, STOPPING)])
async def test_a_task_that_a_server_may_have_seen_is_told_to_be_perhaps_stored(
    others: Sequence[CallFailedError],
) -> None:
    transport = ScriptedTransport(*others)
    new = NewTask(type="t", task_id=TASK_ID)

    with pytest.raises(StorageUnavailableError) as raised:
        await a_queue(transport).enqueue([new])

    assert not isinstance(raised.value, NotSentError)
    assert str(raised.value).endswith(f"; whether task {TASK_ID} is stored is unknown")


async def test_hope_begins_anew_when_a_server_was_heard() -> None:
    transport = ScriptedTransport(*[UNHEARD] * 10, STOPPING, *[UNHEARD] * 10, all_created)

    [answer] = await a_queue(transport).enqueue([NewTask(type="t")])

    assert isinstance(answer, Enqueued)
    assert sum(transport.pauses) > HOPE.total_seconds()


async def test_repeating_ends_with_the_time_for_the_call() -> None:
    transport = ScriptedTransport(AWAY)

    with pytest.raises(StorageUnavailableError, match="away"):
        await a_queue(transport).settle([Complete(ref=REF)])

    assert sum(transport.pauses) < TIMEOUT.total_seconds()
    assert max(transport.pauses) == 2.0
    assert transport.timeouts == sorted(transport.timeouts, reverse=True)


async def test_what_did_not_answer_in_time_is_not_asked_again() -> None:
    transport = ScriptedTransport(TOO_LATE)

    with pytest.raises(StorageUnavailableError, match="too late"):
        await a_queue(transport).settle([Complete(ref=REF)])

    assert len(transport.calls) == 1


async def test_a_refusal_is_not_repeated() -> None:
    transport = ScriptedTransport(CallFailedError(verdict_on(TaskNotFoundError(TASK_ID))))

    with pytest.raises(TaskNotFoundError):
        await a_queue(transport).get(TASK_ID)

    assert len(transport.calls) == 1


@pytest.mark.parametrize("number", [1, 2])
async def test_an_enqueue_is_repeated_under_the_same_ids(number: int) -> None:
    transport = ScriptedTransport(AWAY, AWAY, all_created)

    await a_queue(transport).enqueue([NewTask(type="t")] * number)

    sent = [
        [task.task_id for task in pb.EnqueueBatchRequest.FromString(request).tasks]
        for request in transport.requests
    ]
    assert len(set(sent[0])) == number
    assert sent == [sent[0]] * 3


async def test_an_id_that_the_caller_made_is_kept() -> None:
    transport = ScriptedTransport(all_created)

    await a_queue(transport).enqueue([NewTask(type="t", task_id=TASK_ID)])

    [task] = pb.EnqueueBatchRequest.FromString(transport.requests[0]).tasks
    assert task.task_id == TASK_ID


async def test_any_call_that_a_stopping_server_did_not_begin_is_made_again() -> None:
    transport = ScriptedTransport(STOPPING, all_created)

    [answer] = await a_queue(transport).enqueue([NewTask(type="t")])

    assert isinstance(answer, Enqueued)


async def test_a_lease_is_not_repeated_where_tasks_may_have_been_leased() -> None:
    transport = ScriptedTransport(AWAY)

    with pytest.raises(StorageUnavailableError):
        await a_queue(transport).lease(LeaseRequest(worker_id="w"))

    assert len(transport.calls) == 1


async def test_a_lease_has_its_wait_more_time_than_other_calls() -> None:
    transport = ScriptedTransport(pb.LeaseResponse())
    request = LeaseRequest(worker_id="w", wait=timedelta(hours=1))

    await a_queue(transport).lease(request)

    assert transport.timeouts == [30 + TIMEOUT.total_seconds()]


@pytest.mark.parametrize(("lease", "longest"), [(3600, 10.0), (6, 2.0), (1, 1.0)])
async def test_a_heartbeat_takes_no_longer_than_until_the_next_one_or_a_second(
    lease: int, longest: float
) -> None:
    transport = ScriptedTransport(pb.HeartbeatResponse(results=[pb.HeartbeatResult()]))
    request = HeartbeatRequest(
        worker_id="w", leases=(REF,), lease_duration=timedelta(seconds=lease)
    )

    await a_queue(transport).heartbeat(request)

    assert transport.timeouts == [longest]


@pytest.mark.parametrize(
    ("took", "wait", "kept"),
    [(14.9, 0, True), (15.1, 0, False), (34.9, 20, True), (35.1, 20, False)],
    ids=["in time", "late", "in time after a wait", "late after a wait"],
)
async def test_leases_of_which_half_was_lost_on_the_way_are_given_back(
    took: float, wait: int, *, kept: bool
) -> None:
    leased = LeasedTask(
        task=EVERYTHING,
        lease_token=LeaseToken("l"),
        lease_number=1,
        attempt=1,
        lease_duration=timedelta(seconds=30),
    )
    reply = pb.LeaseResponse(tasks=[write_leased_task(leased)])
    transport = ScriptedTransport(reply, all_done, slowness=took)
    request = LeaseRequest(worker_id="w", wait=timedelta(seconds=wait))

    answer = await a_queue(transport).lease(request)

    assert answer == ([leased] if kept else [])
    assert transport.calls[1:] == ([] if kept else [methods.SETTLE.path])


async def test_leases_that_cannot_be_given_back_are_left_to_expire() -> None:
    leased = LeasedTask(
        task=EVERYTHING,
        lease_token=LeaseToken("l"),
        lease_number=1,
        attempt=1,
        lease_duration=timedelta(seconds=30),
    )
    reply = pb.LeaseResponse(tasks=[write_leased_task(leased)])
    transport = ScriptedTransport(reply, AWAY, slowness=20)

    answer = await a_queue(transport).lease(LeaseRequest(worker_id="w"))

    assert answer == []


# --- batches


async def test_a_batch_that_is_too_large_for_one_request_travels_in_several() -> None:
    transport = ScriptedTransport(all_created)
    tasks = [NewTask(type="t", payload='{"x": "' + "y" * 1_000_000 + '"}')] * 7

    answers = await a_queue(transport).enqueue(tasks)

    assert len(answers) == 7
    assert len(transport.calls) == 3
    assert max(len(request) for request in transport.requests) < 4 * 1024 * 1024


async def test_an_item_that_no_server_would_read_is_refused_alone() -> None:
    transport = ScriptedTransport(all_created)
    monster = NewTask(type="t", payload='{"x": "' + "y" * 5_000_000 + '"}')

    first, second, third = await a_queue(transport).enqueue(
        [NewTask(type="t"), monster, NewTask(type="t")]
    )

    assert isinstance(first, Enqueued)
    assert isinstance(second, InvalidArgumentError)
    assert [violation.field for violation in second.violations] == ["payload"]
    assert isinstance(third, Enqueued)


async def test_a_result_that_no_server_would_read_is_refused_alone() -> None:
    transport = ScriptedTransport(all_done)
    monster = Complete(ref=REF, result='"' + "y" * 5_000_000 + '"')

    refused, done = await a_queue(transport).settle([monster, Release(ref=REF)])

    assert isinstance(refused, InvalidArgumentError)
    assert [violation.field for violation in refused.violations] == ["result"]
    assert done is None


async def test_nothing_to_send_is_not_sent() -> None:
    transport = ScriptedTransport(AWAY)

    assert await a_queue(transport).enqueue([]) == []
    assert await a_queue(transport).settle([]) == []
    assert transport.calls == []


async def test_when_a_later_part_fails_what_was_done_is_still_told() -> None:
    transport = ScriptedTransport(all_created, TOO_LATE)
    tasks = [NewTask(type="t", payload='{"x": "' + "y" * 1_000_000 + '"}')] * 7

    answers = await a_queue(transport).enqueue(tasks)

    told = [type(answer) for answer in answers]
    assert told == [Enqueued] * 3 + [StorageUnavailableError] * 3 + [NotSentError]
    assert len(transport.calls) == 2


async def test_of_many_thousands_those_behind_a_failure_are_not_sent() -> None:
    transport = ScriptedTransport(all_created, TOO_LATE)
    admin = GrpcTaskAdmin(caller=Caller(transport=transport, jitter=FixedJitter()), timeout=TIMEOUT)
    calls = TaskCalls(Connection(a_queue(transport), admin))

    answers = await calls.enqueue_many([NewTask(type="t")] * 3500)

    told = [type(answer) for answer in answers]
    assert told == [Enqueued] * 1000 + [StorageUnavailableError] * 1000 + [NotSentError] * 1500
    assert len(transport.calls) == 2


async def test_a_batch_whose_first_part_fails_is_an_error() -> None:
    transport = ScriptedTransport(TOO_LATE)

    with pytest.raises(StorageUnavailableError):
        await a_queue(transport).enqueue([NewTask(type="t")])


async def test_an_answer_of_the_wrong_length_is_an_error() -> None:
    transport = ScriptedTransport(pb.SettleResponse())

    with pytest.raises(StorageError, match="0 items of 1"):
        await a_queue(transport).settle([Release(ref=REF)])


async def test_an_answer_that_is_no_message_is_an_error() -> None:
    # As GetTaskResponse this is a field of the wrong kind with no end.
    transport = ScriptedTransport(pb.LeaseRef(task_id="\x7f\x7f"))

    with pytest.raises(StorageError, match="cannot be read"):
        await a_queue(transport).get(TASK_ID)
