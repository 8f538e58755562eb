"""What a server does, seen by a program that knows nothing but the wire."""

from __future__ import annotations

import asyncio
import time

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo
from grpc_reflection.v1alpha import reflection_pb2

from leaseq.adapters.grpc import methods
from leaseq.adapters.grpc.generated import queue_pb2
from leaseq.adapters.grpc.generated.queue_pb2_grpc import TaskQueueStub
from leaseq.adapters.grpc.methods import ADMIN_SERVICE, QUEUE_SERVICE
from leaseq.adapters.grpc.options import MAX_REQUEST_BYTES
from leaseq.domain.task import Status
from memory_server import MemoryServer, memory_server
from raw_wire import (
    LONG,
    enqueue,
    health,
    lease_call,
    raw_call,
    refusal,
    rich_status,
    until_in_flight,
    wire,
)
from slow_storage import BrokenStorage, SlowStorage

Code = grpc.StatusCode
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"


async def settled_down(server: MemoryServer) -> None:
    """Return once no call is in flight and nothing is being undone."""
    async with asyncio.timeout(5):
        await server.queue.close()


# --- leases that do not arrive


async def test_a_caller_that_goes_away_while_it_waits_takes_no_task() -> None:
    async with wire() as (server, channel):
        gone = lease_call(channel, wait=LONG)
        await until_in_flight(server, 1)

        gone.cancel()
        await until_in_flight(server, 0)
        task_id = await enqueue(channel)

        task = await server.queue.get(task_id)
        assert (task.status, task.attempts) == (Status.QUEUED, 0)


@pytest.mark.parametrize("wait", [None, LONG], ids=["at once", "waiting"])
async def test_tasks_claimed_for_a_caller_that_has_gone_are_taken_back(
    wait: Duration | None,
) -> None:
    storage = SlowStorage()
    async with wire(storage) as (server, channel):
        task_id = await enqueue(channel)
        gone = lease_call(channel, wait=wait)
        await storage.slow_tasks.claimed.wait()

        gone.cancel()
        await until_in_flight(server, 0)
        storage.slow_tasks.answer.set()
        await settled_down(server)

        again = await lease_call(channel)
        assert [leased.task.id for leased in again.tasks] == [task_id]
        assert [leased.attempt for leased in again.tasks] == [1]


async def test_a_lease_ends_its_wait_before_its_callers_deadline() -> None:
    async with wire() as (_, channel):
        reply = await lease_call(channel, wait=LONG, deadline=1)

        assert not reply.tasks


async def test_tasks_claimed_after_their_callers_deadline_are_taken_back() -> None:
    storage = SlowStorage()
    async with wire(storage) as (server, channel):
        task_id = await enqueue(channel)

        late = await refusal(lease_call(channel, wait=LONG, deadline=0.3))
        await until_in_flight(server, 0)
        storage.slow_tasks.answer.set()
        await settled_down(server)

        task = await server.queue.get(task_id)
        assert late.code() is Code.DEADLINE_EXCEEDED
        assert (task.status, task.attempts) == (Status.QUEUED, 0)


async def test_a_lease_of_which_more_than_half_is_over_is_not_delivered() -> None:
    storage = SlowStorage()
    async with wire(storage) as (server, channel):
        task_id = await enqueue(channel)
        call = asyncio.ensure_future(lease_call(channel))
        await storage.slow_tasks.claimed.wait()

        await asyncio.sleep(0.6)
        storage.slow_tasks.answer.set()
        reply = await call

        task = await server.queue.get(task_id)
        assert not reply.tasks
        assert (task.status, task.attempts) == (Status.QUEUED, 0)


# --- bad input


@pytest.mark.parametrize(
    "raw",
    [b"\xff\xff\xff", b"\x0a\x02\xff\xfe", b"\x0a\x05a"],
    ids=["garbage", "no UTF-8", "cut off"],
)
@pytest.mark.parametrize("path", [methods.ENQUEUE.path, methods.LEASE.path])
async def test_a_malformed_message_is_a_bad_argument(raw: bytes, path: str) -> None:
    async with wire() as (_, channel):
        error = await refusal(raw_call(channel, path, raw))

        status = rich_status(error)
        faults = BadRequest()
        assert error.code() is Code.INVALID_ARGUMENT
        assert status.details[0].Unpack(faults)
        assert [violation.field for violation in faults.field_violations] == ["request"]


async def test_a_message_over_the_limit_is_refused_and_others_are_served() -> None:
    async with wire() as (_, channel):
        payload = '{"a": "' + "x" * MAX_REQUEST_BYTES + '"}'

        error = await refusal(
            TaskQueueStub(channel).Enqueue(queue_pb2.EnqueueRequest(type="t", payload=payload))
        )

        assert error.code() is Code.RESOURCE_EXHAUSTED
        assert await enqueue(channel)


async def test_a_refusal_says_why_in_its_details() -> None:
    async with wire() as (_, channel):
        request = queue_pb2.GetTaskRequest(task_id="01890a5d-ac96-774b-bcce-b302099a8057")

        error = await refusal(TaskQueueStub(channel).GetTask(request))

        status = rich_status(error)
        info = ErrorInfo()
        assert error.code() is Code.NOT_FOUND
        assert status.details[0].Unpack(info)
        assert (info.domain, info.reason) == ("leaseq", "TASK_NOT_FOUND")
        assert info.metadata["task_id"] == request.task_id


async def test_an_error_nobody_expected_is_logged_and_not_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with wire(BrokenStorage()) as (_, channel):
        request = queue_pb2.GetTaskRequest(task_id="01890a5d-ac96-774b-bcce-b302099a8057")

        error = await refusal(TaskQueueStub(channel).GetTask(request))

        assert error.code() is Code.INTERNAL
        assert "secret" not in str(error)
        assert "ZeroDivisionError: a secret of the storage" in caplog.text


async def test_a_status_that_no_task_has_is_a_bad_argument() -> None:
    async with wire() as (_, channel):
        status_99_of_a_later_version = b"\x18\x63"

        error = await refusal(
            raw_call(channel, methods.LIST_TASKS.path, status_99_of_a_later_version)
        )

        assert error.code() is Code.INVALID_ARGUMENT
        assert "statuses[0]" in (error.details() or "")


# --- sizes


async def test_a_reply_fits_into_what_clients_accept_by_default() -> None:
    payload = '{"x": "' + "y" * 100_000 + '"}'
    async with wire() as (_, channel):
        for _ in range(200):
            await enqueue(channel, payload=payload)
        request = queue_pb2.LeaseRequest(worker_id="w", max_tasks=200)

        seen: set[str] = set()
        while reply := (await TaskQueueStub(channel).Lease(request)).tasks:
            seen |= {leased.task.id for leased in reply}

        assert len(seen) == 200


async def test_the_reply_to_a_batch_fits_though_its_payloads_grew() -> None:
    swollen = queue_pb2.EnqueueRequest(
        type="t", payload='{"a": [' + ", ".join(["1e308"] * 1000) + "]}"
    )
    async with wire() as (_, channel):
        request = queue_pb2.EnqueueBatchRequest(tasks=[swollen] * 200)

        reply = await TaskQueueStub(channel).EnqueueBatch(request)

        assert all(result.ok.created for result in reply.results)


# --- health, reflection, the address


async def test_health_says_whether_calls_are_welcome() -> None:
    async with wire() as (server, channel):
        before = [await health(channel, name) for name in ("", QUEUE_SERVICE, ADMIN_SERVICE)]

        await server.grpc.set_serving(serving=False)

        assert before == ["SERVING"] * 3
        assert await health(channel, "") == "NOT_SERVING"


async def test_health_of_a_service_that_is_not_here_is_not_found() -> None:
    async with wire() as (_, channel):
        error = await refusal(health(channel, "nobody"))

        assert error.code() is Code.NOT_FOUND


async def test_reflection_lists_the_services_if_it_is_asked_for() -> None:
    async with wire(reflection=True) as (_, channel):
        names = await listed_services(channel)

        assert {QUEUE_SERVICE, ADMIN_SERVICE, "grpc.health.v1.Health"} <= names


async def test_without_being_asked_for_there_is_no_reflection() -> None:
    async with wire() as (_, channel):
        error = await refusal(listed_services(channel))

        assert error.code() is Code.UNIMPLEMENTED


async def test_an_address_that_is_taken_is_an_error_that_names_it() -> None:
    async with memory_server() as server:
        port = int(server.target.rpartition(":")[2])

        with pytest.raises(OSError, match=server.target):
            async with memory_server(port=port):
                pass


async def test_many_who_wait_keep_no_health_check_waiting() -> None:
    async with wire() as (server, channel):
        waiting = [asyncio.ensure_future(lease_call(channel, wait=LONG)) for _ in range(1000)]
        await until_in_flight(server, 1000)

        began = time.monotonic()
        await health(channel, "")
        took = time.monotonic() - began

        for call in waiting:
            call.cancel()
        await asyncio.wait(waiting)
        await until_in_flight(server, 0)
        assert took < 0.2


async def listed_services(channel: grpc.aio.Channel) -> set[str]:
    request = reflection_pb2.ServerReflectionRequest(list_services="").SerializeToString()
    method: grpc.aio.StreamStreamMultiCallable[bytes, bytes] = channel.stream_stream(REFLECTION)
    call = method(iter([request]))
    async for raw in call:
        reply = reflection_pb2.ServerReflectionResponse.FromString(raw)
        return {service.name for service in reply.list_services_response.service}
    return set()


async def test_thousands_of_calls_that_come_at_once_are_all_answered() -> None:
    async with wire() as (_, channel):
        calls = [lease_call(channel, wait=Duration(seconds=1)) for _ in range(2500)]
        replies = await asyncio.gather(*calls)

    assert [len(reply.tasks) for reply in replies] == [0] * 2500
