"""Every door gives the same verdict on the same words."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest

from ...domain.errors import InvalidArgumentError
from ...domain.json_text import normalise_object
from ...domain.ports import TaskQueue
from ...domain.requests import (
    Complete,
    Fail,
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    Release,
)
from ...domain.task import Status
from ...domain.views import Enqueued
from ..builders import DAY, HOUR, MICROSECOND, SECOND
from ..fakes import Time
from .queue_fixtures import QueueFixtures, enqueue_one, faults, lease, lease_one, ref

_MILLISECOND: Final = timedelta(milliseconds=1)
_MIB: Final = 1024 * 1024

REFUSED_TASKS: Final[dict[str, tuple[NewTask, list[str]]]] = {
    "no type": (NewTask(type=""), ["type"]),
    "a blank in the type": (NewTask(type="send mail"), ["type"]),
    "a type of 101 characters": (NewTask(type="t" * 101), ["type"]),
    "a line feed after the type": (NewTask(type="send\n"), ["type"]),
    "a lone surrogate in the type": (NewTask(type="send\ud800"), ["type"]),
    "letters beyond ASCII in the queue": (NewTask(type="t", queue="größe"), ["queue"]),
    "NUL in the queue": (NewTask(type="t", queue="a\x00"), ["queue"]),
    "a key of 256 bytes": (NewTask(type="t", idempotency_key="ä" * 128), ["idempotency_key"]),
    "a blank before the key": (NewTask(type="t", idempotency_key=" k"), ["idempotency_key"]),
    "a blank after the key": (NewTask(type="t", idempotency_key="k\u00a0"), ["idempotency_key"]),
    "a tab in the key": (NewTask(type="t", idempotency_key="a\tb"), ["idempotency_key"]),
    "NUL in the key": (NewTask(type="t", idempotency_key="a\x00b"), ["idempotency_key"]),
    "a lone surrogate in the key": (
        NewTask(type="t", idempotency_key="a\udfff"),
        ["idempotency_key"],
    ),
    "a priority below 0": (NewTask(type="t", priority=-1), ["priority"]),
    "a priority above 255": (NewTask(type="t", priority=256), ["priority"]),
    "a priority beyond 64 bits": (NewTask(type="t", priority=2**64), ["priority"]),
    "no attempts": (NewTask(type="t", max_attempts=0), ["max_attempts"]),
    "more than 1000 attempts": (NewTask(type="t", max_attempts=1001), ["max_attempts"]),
    "attempts beyond 32 bits": (NewTask(type="t", max_attempts=2**31), ["max_attempts"]),
    "a negative delay": (NewTask(type="t", delay=-MICROSECOND), ["delay"]),
    "a delay of over a year": (NewTask(type="t", delay=365 * DAY + MICROSECOND), ["delay"]),
    "a delay of millions of years": (NewTask(type="t", delay=timedelta.max), ["delay"]),
    "a base below 1 ms": (
        NewTask(type="t", retry_base=timedelta(microseconds=999)),
        ["retry.base"],
    ),
    "a base of over a day": (NewTask(type="t", retry_base=DAY + MICROSECOND), ["retry.base"]),
    "a cap below the base": (NewTask(type="t", retry_base=HOUR, retry_cap=SECOND), ["retry.cap"]),
    "a cap of over 30 days": (NewTask(type="t", retry_cap=30 * DAY + MICROSECOND), ["retry.cap"]),
    "several faults": (
        NewTask(type="", queue="?", priority=300, max_attempts=0, payload="nonsense"),
        ["queue", "type", "payload", "priority", "max_attempts"],
    ),
}

REFUSED_PAYLOADS: Final[dict[str, str]] = {
    "an array": "[]",
    "a number": "3",
    "a text": '"{}"',
    "null": "null",
    "blanks": "  ",
    "an open brace": "{",
    "words after the object": '{"a": 1} x',
    "two objects": "{}{}",
    "a byte order mark": "\ufeff{}",
    "single quotes": "{'a': 1}",
    "a comma too many": '{"a": 1,}',
    "a comment": '{"a": 1} // one',
    "NaN": '{"a": NaN}',
    "Infinity": '{"a": -Infinity}',
    "a number beyond doubles": '{"a": 1e400}',
    "an integer of 1001 digits": '{"a": ' + "9" * 1001 + "}",
    "NUL escaped": '{"a": "x\\u0000"}',
    "NUL escaped in a key": '{"x\\u0000": 1}',
    "NUL": '{"a": "x\x00"}',
    "a lone surrogate escaped": '{"a": "\\ud800"}',
    "a lone surrogate": '{"a": "\ud800"}',
    "a line feed in a text": '{"a": "x\ny"}',
    "65 levels": '{"a": ' * 65 + "1" + "}" * 65,
    "100,000 levels": '{"a": ' * 100_000 + "1" + "}" * 100_000,
    "a byte more than a mebibyte": '{"a": "' + "x" * (_MIB - 8) + '"}',
    "more than a mebibyte as kept": '{"a": [' + "1e308," * 4000 + "1]}",
}

TAKEN_PAYLOADS: Final[dict[str, str]] = {
    "nothing but braces": "{}",
    "blanks around": " \r\n\t{ }\n",
    "64 levels": '{"a": ' * 64 + "1" + "}" * 64,
    "64 levels of arrays": '{"a": ' + "[" * 63 + "]" * 63 + "}",
    "exactly a mebibyte": '{"a": "' + "x" * (_MIB - 9) + '"}',
    "large integers": '{"i": 9007199254740993, "j": 1, "n": -9223372036854775808}',
    "a surrogate pair escaped": '{"a": "\\ud83e\\udd8a"}',
    "a key twice": '{"a": 1, "a": 2}',
    "an exponent": '{"a": 1E+2}',
}

REFUSED_LEASES: Final[dict[str, tuple[LeaseRequest, list[str]]]] = {
    "no worker": (LeaseRequest(worker_id=""), ["worker_id"]),
    "a worker of 101 characters": (LeaseRequest(worker_id="w" * 101), ["worker_id"]),
    "a worker with a lone surrogate": (LeaseRequest(worker_id="w\ud800"), ["worker_id"]),
    "an empty queue": (LeaseRequest(worker_id="w", queues=("a", "")), ["queues[1]"]),
    "101 queues": (LeaseRequest(worker_id="w", queues=("a",) * 101), ["queues"]),
    "a bad type": (LeaseRequest(worker_id="w", types=("a b",)), ["types[0]"]),
    "101 types": (LeaseRequest(worker_id="w", types=("a",) * 101), ["types"]),
    "a lease below 1 s": (
        LeaseRequest(worker_id="w", lease_duration=SECOND - MICROSECOND),
        ["lease_duration"],
    ),
    "a lease of over 12 h": (
        LeaseRequest(worker_id="w", lease_duration=12 * HOUR + MICROSECOND),
        ["lease_duration"],
    ),
    "no tasks": (LeaseRequest(worker_id="w", max_tasks=0), ["max_tasks"]),
    "over 1000 tasks": (LeaseRequest(worker_id="w", max_tasks=1001), ["max_tasks"]),
    "tasks beyond 64 bits": (LeaseRequest(worker_id="w", max_tasks=2**64), ["max_tasks"]),
    "a negative wait": (LeaseRequest(worker_id="w", wait=-MICROSECOND), ["wait"]),
    "several faults": (
        LeaseRequest(worker_id="", queues=("?",), max_tasks=-1, wait=-SECOND),
        ["worker_id", "queues[0]", "max_tasks", "wait"],
    ),
}

_SOME_LEASE: Final = LeaseRef(task_id="01890000-0000-7000-8000-000000000000", lease_token="t")

REFUSED_HEARTBEATS: Final[dict[str, tuple[HeartbeatRequest, list[str]]]] = {
    "no worker": (HeartbeatRequest(worker_id="", leases=(_SOME_LEASE,)), ["worker_id"]),
    "no worker and no lease": (HeartbeatRequest(worker_id="", leases=()), ["worker_id"]),
    "a lease below 1 s": (
        HeartbeatRequest(worker_id="w", leases=(), lease_duration=timedelta(0)),
        ["lease_duration"],
    ),
    "a lease of over 12 h": (
        HeartbeatRequest(worker_id="w", leases=(), lease_duration=13 * HOUR),
        ["lease_duration"],
    ),
    "over 1000 leases": (
        HeartbeatRequest(worker_id="w", leases=(_SOME_LEASE,) * 1001),
        ["leases"],
    ),
}

REFUSED_REFS: Final[dict[str, tuple[LeaseRef, list[str]]]] = {
    "no id": (LeaseRef(task_id="", lease_token="t"), ["task_id"]),
    "no UUID": (LeaseRef(task_id="7", lease_token="t"), ["task_id"]),
    "no token": (LeaseRef(task_id=_SOME_LEASE.task_id, lease_token=""), ["lease_token"]),
    "a token of 101 characters": (
        LeaseRef(task_id=_SOME_LEASE.task_id, lease_token="t" * 101),
        ["lease_token"],
    ),
    "nothing": (LeaseRef(task_id="", lease_token=""), ["task_id", "lease_token"]),
}


class RefusalContract(QueueFixtures):
    """A bad argument is refused with every fault by name, and nothing is done."""

    @pytest.mark.parametrize(("new", "fields"), REFUSED_TASKS.values(), ids=REFUSED_TASKS.keys())
    async def test_a_bad_task_is_refused(
        self, queue: TaskQueue, new: NewTask, fields: list[str]
    ) -> None:
        [answer] = await queue.enqueue([new])

        assert faults(answer) == fields
        assert await lease(queue) == []

    async def test_a_moment_without_zone_or_too_far_ahead_is_refused(
        self, queue: TaskQueue, time: Time
    ) -> None:
        naive = (time.now() + HOUR).replace(tzinfo=None)
        far = time.now() + 366 * DAY

        answers = await queue.enqueue(
            [NewTask(type="t", run_after=naive), NewTask(type="t", run_after=far)]
        )

        assert [faults(answer) for answer in answers] == [["run_after"], ["run_after"]]

    async def test_a_delay_together_with_a_moment_is_refused(
        self, queue: TaskQueue, time: Time
    ) -> None:
        [answer] = await queue.enqueue([NewTask(type="t", delay=SECOND, run_after=time.now())])

        assert faults(answer) == ["delay"]

    @pytest.mark.parametrize("text", REFUSED_PAYLOADS.values(), ids=REFUSED_PAYLOADS.keys())
    async def test_a_bad_payload_is_refused(self, queue: TaskQueue, text: str) -> None:
        [answer] = await queue.enqueue([NewTask(type="t", payload=text)])

        [field] = faults(answer)
        assert field.startswith("payload")

    async def test_a_refusal_says_where_in_the_payload(self, queue: TaskQueue) -> None:
        [answer] = await queue.enqueue(
            [NewTask(type="t", payload='{"a": {"b": [1, {"c": "\\u0000"}]}}')]
        )

        assert faults(answer) == ["payload.a.b[1].c"]

    @pytest.mark.parametrize("text", TAKEN_PAYLOADS.values(), ids=TAKEN_PAYLOADS.keys())
    async def test_a_sound_payload_reaches_the_worker(self, queue: TaskQueue, text: str) -> None:
        await enqueue_one(queue, NewTask(type="t", payload=text))

        [leased] = await lease(queue)

        assert leased.task.payload == normalise_object(text)

    @pytest.mark.parametrize(
        "key",
        ["k", "ä" * 127 + "x", "🦊" * 63 + "abc", "a b", "\u00e9", "e\u0301", "'; --", "\\u0000"],
    )
    async def test_a_sound_key_is_kept(self, queue: TaskQueue, key: str) -> None:
        task = await enqueue_one(queue, NewTask(type="t", idempotency_key=key))

        assert task.idempotency_key == key
        assert (await queue.get(task.id)).idempotency_key == key

    async def test_keys_that_look_alike_are_different(self, queue: TaskQueue) -> None:
        keys = ("\u00e9", "e\u0301", "K", "\u212a", "k")

        answers = await queue.enqueue([NewTask(type="t", idempotency_key=key) for key in keys])

        assert [isinstance(each, Enqueued) and each.created for each in answers] == [True] * 5

    @pytest.mark.parametrize(
        ("request_", "fields"), REFUSED_LEASES.values(), ids=REFUSED_LEASES.keys()
    )
    async def test_a_bad_lease_is_refused(
        self, queue: TaskQueue, request_: LeaseRequest, fields: list[str]
    ) -> None:
        await enqueue_one(queue)

        with pytest.raises(InvalidArgumentError) as refusal:
            await queue.lease(request_)

        assert faults(refusal.value) == fields

    @pytest.mark.parametrize(
        ("request_", "fields"), REFUSED_HEARTBEATS.values(), ids=REFUSED_HEARTBEATS.keys()
    )
    async def test_a_bad_heartbeat_is_refused(
        self, queue: TaskQueue, request_: HeartbeatRequest, fields: list[str]
    ) -> None:
        with pytest.raises(InvalidArgumentError) as refusal:
            await queue.heartbeat(request_)

        assert faults(refusal.value) == fields

    @pytest.mark.parametrize(("bad", "fields"), REFUSED_REFS.values(), ids=REFUSED_REFS.keys())
    @pytest.mark.parametrize("end", [Complete, Fail, Release])
    async def test_a_lease_that_cannot_be_is_refused(
        self,
        queue: TaskQueue,
        end: type[Complete | Fail | Release],
        bad: LeaseRef,
        fields: list[str],
    ) -> None:
        [beat] = await queue.heartbeat(HeartbeatRequest(worker_id="w", leases=(bad,)))
        [settled] = await queue.settle([end(ref=bad)])

        assert faults(beat) == fields
        assert faults(settled) == fields

    async def test_more_than_a_thousand_settlements_are_refused_whole(
        self, queue: TaskQueue
    ) -> None:
        await enqueue_one(queue)
        leased = await lease_one(queue)

        with pytest.raises(InvalidArgumentError) as refusal:
            await queue.settle([Complete(ref=ref(leased))] * 1001)

        assert faults(refusal.value) == ["settlements"]
        assert (await queue.get(leased.task.id)).status == Status.LEASED
