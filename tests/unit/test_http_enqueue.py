from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from http_doors import Door, http_door
from leaseq.adapters.http.bodies import MAX_BODY_BYTES
from leaseq.domain.errors import InvalidArgumentError
from leaseq.domain.requests import NewTask
from slow_storage import BrokenStorage

PROBLEM = "application/problem+json"
NO_TASK = "01980c1e-7c00-7000-8000-000000000001"


@pytest.fixture
async def door() -> AsyncIterator[Door]:
    async with http_door() as opened:
        yield opened


def faults(answer: httpx.Response) -> dict[str, str]:
    assert answer.headers["content-type"] == PROBLEM
    document = answer.json()
    assert document["status"] == answer.status_code
    return {each["field"]: each["description"] for each in document.get("violations", [])}


def numbers_as_spelt(text: str) -> Any:
    return json.loads(text, parse_float=str, parse_int=str)


async def test_a_type_alone_makes_a_task(door: Door) -> None:
    answer = await door.enqueue('{"type": "hello"}')

    told = answer.json()
    task = await door.queue.get(told["task_id"])
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/tasks/{task.id}"
    assert told["created"] is True
    assert (task.queue, task.type, task.payload) == ("default", "hello", "{}")


async def test_every_field_reaches_the_task(door: Door) -> None:
    run_after = datetime.now(UTC) + timedelta(hours=1)
    body = {
        "type": "t",
        "payload": {"n": 1},
        "queue": "q",
        "priority": 9,
        "run_after": run_after.isoformat(),
        "max_attempts": 3,
        "retry": {"base": 0.5, "cap": 60},
        "idempotency_key": "k",
        "allow_different_payload": False,
    }

    answer = await door.enqueue(json.dumps(body))

    task = await door.queue.get(answer.json()["task_id"])
    assert (task.queue, task.priority, task.max_attempts) == ("q", 9, 3)
    assert task.run_after == run_after
    assert task.idempotency_key == "k"


@pytest.mark.parametrize("delay", ["60", "6e1", "60.0", "6.0E+1", "60.0000009"])
async def test_a_delay_is_in_seconds_however_it_is_spelt(door: Door, delay: str) -> None:
    answer = await door.enqueue(f'{{"type": "t", "delay": {delay}}}')

    task = await door.queue.get(answer.json()["task_id"])
    assert task.run_after - task.created_at == timedelta(minutes=1)


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1.0, "a": 1.10}',
        '{"n": 123456789012345678901234567890}',
        '{"n": 1e22, "m": 1E-7, "z": -0.0}',
        '{ "s" : "\\u00e9 \\/ é" , "a" : [ ] }',
        '{"a": 1, "a": 2}',
        "{}",
    ],
)
async def test_a_payload_is_kept_as_by_the_other_doors(door: Door, text: str) -> None:
    [by_queue] = await door.queue.enqueue([NewTask(type="t", payload=text)])
    expected = by_queue.task.payload if not isinstance(by_queue, Exception) else None

    answer = await door.enqueue(f'{{"type": "t", "payload": {text}}}')
    shown = await door.http.get(answer.headers["location"])

    assert (await door.queue.get(answer.json()["task_id"])).payload == expected
    assert numbers_as_spelt(shown.text)["payload"] == numbers_as_spelt(str(expected))


@pytest.mark.parametrize(
    "text",
    [
        "null",
        "[]",
        "3",
        '"{}"',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": [1, "\\u0000"]}',
        '{"a": "\\ud800"}',
        '{"a": 1e400}',
        '{"a": 1e-400}',
        '{"a": ' + "9" * 1001 + "}",
        '{"a": ' + "[" * 64 + "]" * 64 + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": "' + "x" * 1024 * 1024 + '"}',
    ],
    ids=lambda text: text[:20],
)
async def test_a_payload_gets_the_verdict_of_the_other_doors(door: Door, text: str) -> None:
    [refusal] = await door.queue.enqueue([NewTask(type="t", payload=text)])
    assert isinstance(refusal, InvalidArgumentError)

    answer = await door.enqueue(f'{{"type": "t", "payload": {text}}}')

    assert answer.status_code == 400
    assert faults(answer) == {each.field: each.description for each in refusal.violations}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "Expecting"),
        (b"[]", "must be a JSON object"),
        (b'"x"', "must be a JSON object"),
        (b'{"type": "t"} {}', "Extra data"),
        (b'{"type": "t",}', "Expecting property name"),
        (b'{"type" "t"}', "Expecting ':'"),
        (b'{"type": "t" "queue": "q"}', "Expecting ','"),
        (b'{"type": "t", "payload": {"a":}}', "Expecting value"),
        (b'{"type": "t', "Unterminated string"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        (b'{"type": "\xff"}', "not UTF-8 at byte 10"),
        (b"[" * 100_000, "the end of what is nested"),
        (b'{"type": "t", "payload": ' + b"[" * 100_000 + b"}", "the end of what is nested"),
    ],
    ids=lambda value: str(value)[:30],
)
async def test_what_is_no_json_object_is_refused(door: Door, body: bytes, fault: str) -> None:
    answer = await door.enqueue(body)

    assert answer.status_code == 400
    assert fault in faults(answer)["body"]


@pytest.mark.parametrize(
    ("member", "field", "fault"),
    [
        ('"typ": "t"', "typ", "is no field of this object; did you mean type?"),
        ('"x": [[[]]]', "x", "is no field of this object"),
        ('"type": "u"', "type", "is given twice"),
        ('"payload": {}, "payload": {}', "payload", "is given twice"),
        ('"queue": null', "queue", "must be a string"),
        ('"queue": "a b"', "queue", "must be 1 to 100"),
        ('"priority": "1"', "priority", "must be a whole number"),
        ('"priority": 1.5', "priority", "must be a whole number"),
        ('"priority": true', "priority", "must be a whole number"),
        ('"priority": 1e999999999999999999999', "priority", "must be from 0 to 255"),
        ('"priority": ' + "9" * 100_000, "priority", "must be from 0 to 255"),
        ('"max_attempts": 0', "max_attempts", "must be from 1 to 1000"),
        ('"delay": -1e-7', "delay", "must be from 0 to 365 days"),
        ('"delay": "5m"', "delay", "must be a number of seconds"),
        ('"delay": NaN', "delay", "must be a number of seconds"),
        ('"delay": 1, "run_after": "2030-01-01T00:00:00Z"', "delay", "must not be given together"),
        ('"run_after": "2030-01-01"', "run_after", "RFC 3339"),
        ('"run_after": "2030-01-01T00:00:00"', "run_after", "RFC 3339"),
        ('"run_after": "2030-02-30T00:00:00Z"', "run_after", "is no date and time"),
        ('"run_after": "9999-12-31T23:59:60Z"', "run_after", "is no date and time"),
        ('"run_after": "9999-12-31T23:59:59-23:59"', "run_after", "at most 365 days ahead"),
        ('"task_id": "1"', "task_id", "must be a UUIDv7"),
        ('"retry": 1', "retry", "must be an object"),
        ('"retry": {"base": "1"}', "retry.base", "must be a number of seconds"),
        ('"retry": {"bases": 1}', "retry.bases", "did you mean retry.base?"),
        ('"retry": {"base": 0}', "retry.base", "must be from 1 ms to 1 day"),
        ('"idempotency_key": "\\ud800"', "idempotency_key", "lone surrogate"),
        ('"allow_different_payload": 1', "allow_different_payload", "must be true or false"),
        ('"\\ud800": 1', "\ufffd", "is no field of this object"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_a_fault_is_told_by_the_name_of_its_field(
    door: Door, member: str, field: str, fault: str
) -> None:
    answer = await door.enqueue(f'{{"type": "t", {member}}}')

    assert answer.status_code == 400
    assert answer.json()["reason"] == "INVALID_ARGUMENT"
    assert fault in faults(answer)[field]


async def test_all_faults_are_told_together(door: Door) -> None:
    answer = await door.enqueue('{"typ": "t", "priority": "1", "queue": "a b", "delay": -1}')

    assert faults(answer).keys() == {"typ", "type", "priority", "queue", "delay"}


async def test_faults_without_end_are_told_in_short(door: Door) -> None:
    body = "{" + ", ".join(f'"types{n}": {n}' for n in range(100_000)) + "}"

    answer = await door.enqueue(body)

    assert len(answer.content) < 10_000
    assert faults(answer)["body"] == "has 99980 more faults"


@pytest.mark.parametrize(
    "moment",
    ["2020-01-01T00:00:00Z", "0000-01-01t00:00:00z", "0001-01-01T00:00:00+23:59"],
)
async def test_a_moment_in_the_past_means_now(door: Door, moment: str) -> None:
    answer = await door.enqueue(f'{{"type": "t", "run_after": "{moment}"}}')

    task = await door.queue.get(answer.json()["task_id"])
    assert task.run_after == task.created_at


async def test_a_key_makes_one_task_of_two_requests(door: Door) -> None:
    first = await door.enqueue('{"type": "t"}', idempotency_key="k")
    again = await door.enqueue('{"type": "t", "idempotency_key": "k"}')
    quoted = await door.enqueue('{"type": "t"}', idempotency_key='"k"')

    assert [each.status_code for each in (first, again, quoted)] == [201, 200, 200]
    assert again.json() == first.json() | {"created": False}
    assert quoted.json()["task_id"] == first.json()["task_id"]


async def test_an_id_of_the_producers_makes_one_task_of_two_requests(door: Door) -> None:
    body = f'{{"type": "t", "task_id": "{NO_TASK}"}}'

    first = await door.enqueue(body)
    again = await door.enqueue(body)
    other = await door.enqueue(body.replace('"t"', '"u"'))

    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json()["task_id"] == first.json()["task_id"] == NO_TASK
    assert (other.status_code, other.json()["reason"]) == (409, "TASK_ID_REUSED")


async def test_a_key_of_another_task_is_refused_with_its_id(door: Door) -> None:
    first = await door.enqueue('{"type": "t", "idempotency_key": "k"}')

    other = await door.enqueue('{"type": "u", "idempotency_key": "k"}')
    allowed = await door.enqueue(
        '{"type": "u", "idempotency_key": "k", "allow_different_payload": true}'
    )

    assert other.status_code == 409
    assert other.json()["reason"] == "IDEMPOTENCY_KEY_REUSED"
    assert other.json()["task_id"] == first.json()["task_id"] == allowed.json()["task_id"]


@pytest.mark.parametrize(
    ("headers", "body", "field"),
    [
        ([("idempotency-key", "a")], '{"type": "t", "idempotency_key": "b"}', "idempotency_key"),
        ([("idempotency-key", "a")] * 2, '{"type": "t"}', "header Idempotency-Key"),
        ([("idempotency-key", "é")], '{"type": "t"}', "header Idempotency-Key"),
    ],
    ids=["another in the body", "twice", "not ASCII"],
)
async def test_a_key_that_is_unclear_is_refused(
    door: Door, headers: list[tuple[str, str]], body: str, field: str
) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers]
    answer = await door.http.post(
        "/enqueue", content=body, headers=[*raw, (b"content-type", b"application/json")]
    )

    assert answer.status_code == 400
    assert faults(answer).keys() == {field}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"content-type": "application/json"}, 201),
        ({"content-type": "Application/JSON; charset=utf-8; v=1"}, 201),
        ({"content-type": "application/json", "origin": "https://evil.example"}, 201),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": "application/jsonp"}, 415),
        ({}, 415),
        ({"content-type": "application/json", "content-encoding": "gzip"}, 415),
        ({"content-type": "application/json", "host": "evil.example"}, 421),
        ({"content-type": "application/json", "host": "127.0.0.1:7481"}, 201),
    ],
    ids=str,
)
async def test_headers_decide_whether_a_body_is_looked_at(
    door: Door, headers: dict[str, str], status: int
) -> None:
    answer = await door.http.post("/enqueue", content='{"type": "t"}', headers=headers)

    assert answer.status_code == status
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-type"] == ("application/json" if status == 201 else PROBLEM)


async def test_a_body_may_have_its_whole_size_and_not_a_byte_more(door: Door) -> None:
    body = b'{"type": "t"}'

    full = await door.enqueue(body.ljust(MAX_BODY_BYTES))
    over = await door.enqueue(body.ljust(MAX_BODY_BYTES + 1))

    assert full.status_code == 201
    assert over.status_code == 413
    assert over.headers["connection"] == "close"
    assert faults(over) == {"body": "is larger than 4 MiB"}


async def test_a_batch_answers_for_each_item(door: Door) -> None:
    await door.enqueue('{"type": "t", "idempotency_key": "k"}')
    items: list[Any] = [
        {"type": "t", "payload": {"n": 1}},
        {"type": "a b", "payload": []},
        {"type": "t", "idempotency_key": "k"},
        {"type": "u", "idempotency_key": "k"},
        {"kind": "t"},
        7,
    ]

    answer = await door.http.post("/v1/tasks:batch", json={"tasks": items})

    results = answer.json()["results"]
    assert answer.status_code == 200
    assert [each["ok"]["created"] if "ok" in each else None for each in results[:4]] == [
        True,
        None,
        False,
        None,
    ]
    assert [each["refused"]["status"] for each in results if "refused" in each] == [
        400,
        409,
        400,
        400,
    ]
    assert {each["field"] for each in results[1]["refused"]["violations"]} == {"type", "payload"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{}", "tasks"),
        ('{"tasks": {}}', "tasks"),
        ('{"tasks": [], "tasks": []}', "tasks"),
        ('{"task": []}', "task"),
        ("[]", "body"),
        ('{"tasks": [}', "body"),
        ('{"tasks": [' + ", ".join(['{"type": "t"}'] * 1001) + "]}", "tasks"),
    ],
    ids=lambda value: value[:30],
)
async def test_a_batch_with_faults_of_its_own_stores_nothing(
    door: Door, body: str, field: str
) -> None:
    answer = await door.http.post(
        "/v1/tasks:batch", content=body, headers={"content-type": "application/json"}
    )

    assert answer.status_code == 400
    assert field in faults(answer)


async def test_a_key_for_a_whole_batch_is_refused(door: Door) -> None:
    answer = await door.http.post(
        "/v1/tasks:batch", json={"tasks": []}, headers={"idempotency-key": "k"}
    )

    assert answer.status_code == 400


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        (f"/v1/tasks/{NO_TASK}", 404, "TASK_NOT_FOUND"),
        ("/v1/tasks/nonsense", 400, "INVALID_ARGUMENT"),
        ("/v1/tasks/", 404, "NOT_FOUND"),
        ("/nothing", 404, "NOT_FOUND"),
        ("/enqueue", 405, "METHOD_NOT_ALLOWED"),
        ("/enqueue/", 404, "NOT_FOUND"),
    ],
)
async def test_what_is_not_there_is_told(door: Door, path: str, status: int, reason: str) -> None:
    answer = await door.http.get(path)

    assert answer.status_code == status
    assert answer.json()["reason"] == reason
    assert answer.headers.get("allow") == ("POST" if status == 405 else None)


async def test_a_gate_that_drains_lets_only_health_in(door: Door) -> None:
    door.gate.draining = True

    refused = await door.enqueue('{"type": "t"}')
    health = await door.http.get("/healthz")

    assert refused.status_code == 503
    assert refused.json()["reason"] == "DRAINING"
    assert int(refused.headers["retry-after"]) >= 1
    assert health.json() == {"status": "alive"}


async def test_a_crowd_is_asked_to_come_again(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leaseq.adapters.http.app.MAX_IN_FLIGHT", 0)

    refused = await door.enqueue('{"type": "t"}')

    assert refused.status_code == 429
    assert refused.json()["reason"] == "TOO_MANY_REQUESTS"
    assert int(refused.headers["retry-after"]) >= 1


async def test_a_failure_keeps_its_words_to_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async with http_door(BrokenStorage()) as door:
        answer = await door.http.get(f"/v1/tasks/{NO_TASK}")

    assert answer.status_code == 500
    assert answer.json()["reason"] == "INTERNAL"
    assert "secret" not in answer.text
    assert [record.levelname for record in caplog.records] == ["ERROR"]
