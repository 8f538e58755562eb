from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import pytest

import leaseq

URL = "memory://client-tests"


@pytest.fixture
def client() -> Iterator[leaseq.Client]:
    with leaseq.connect(URL) as client:
        yield client


@pytest.fixture
async def async_client() -> AsyncIterator[leaseq.AsyncClient]:
    async with leaseq.connect_async(URL) as client:
        yield client


def test_a_task_is_enqueued_and_seen(client: leaseq.Client) -> None:
    enqueued = client.enqueue("send_email", {"to": "ä@example.org"}, queue="emails", priority=5)

    task = client.get(enqueued.task.id)
    assert enqueued.created
    assert (task.type, task.queue, task.priority) == ("send_email", "emails", 5)
    assert task.payload == '{"to": "ä@example.org"}'
    assert task.status is leaseq.Status.QUEUED


@pytest.mark.parametrize(
    ("payload", "kept"),
    [
        (None, "{}"),
        ({}, "{}"),
        ('{"b":1.10}', '{"b": 1.10}'),
        (MappingProxyType({"a": [1, None, True]}), '{"a": [1, null, true]}'),
    ],
    ids=["nothing", "empty", "text", "mapping"],
)
def test_a_payload_is_a_mapping_or_the_text_of_one(
    payload: Mapping[str, Any] | str | None, kept: str, client: leaseq.Client
) -> None:
    assert client.enqueue("t", payload).task.payload == kept


@pytest.mark.parametrize(
    "payload",
    [{"a": float("nan")}, {"a": object()}, {"a": {1, 2}}, "[1]", "{"],
    ids=["nan", "object", "set", "array", "no json"],
)
def test_a_payload_that_json_has_no_word_for_is_refused(
    payload: Any, client: leaseq.Client
) -> None:
    with pytest.raises(leaseq.InvalidArgumentError, match=r"^payload"):
        client.enqueue("t", payload)


@pytest.mark.parametrize("payload", [[], [("a", 1)], (), {"a"}, b"{}", 0, False, 7], ids=repr)
def test_a_payload_that_is_neither_a_mapping_nor_a_text_is_refused(
    payload: Any, client: leaseq.Client
) -> None:
    refusal = "^payload: must be a mapping or the text of a JSON object$"

    with pytest.raises(leaseq.InvalidArgumentError, match=refusal):
        client.enqueue("t", payload)


def test_a_payload_that_holds_itself_is_refused(client: leaseq.Client) -> None:
    payload: dict[str, Any] = {}
    payload["self"] = payload

    with pytest.raises(leaseq.InvalidArgumentError, match=r"^payload"):
        client.enqueue("t", payload)


@pytest.mark.parametrize("delay", [90, 90.0, timedelta(seconds=90)], ids=repr)
def test_spans_are_seconds_or_timedeltas(delay: timedelta | float, client: leaseq.Client) -> None:
    task = client.enqueue("t", delay=delay, retry_base=0.5, retry_cap=60).task

    assert task.run_after - task.created_at == timedelta(seconds=90)


@pytest.mark.parametrize("delay", [float("nan"), float("inf"), 1e300, -1], ids=repr)
def test_a_span_beyond_reason_is_refused(delay: float, client: leaseq.Client) -> None:
    with pytest.raises(leaseq.InvalidArgumentError, match=r"^delay"):
        client.enqueue("t", delay=delay)


def test_a_task_can_wait_for_a_moment(client: leaseq.Client) -> None:
    moment = datetime(2001, 1, 1, tzinfo=UTC)

    task = client.enqueue("t", run_after=moment).task

    assert task.run_after == task.created_at


def test_a_key_enqueues_once(client: leaseq.Client) -> None:
    first = client.enqueue("t", {"a": 1}, idempotency_key="k")

    again = client.enqueue("t", {"a": 1}, idempotency_key="k")
    allowed = client.enqueue("t", {"a": 2}, idempotency_key="k", allow_different_payload=True)

    assert (again.task.id, again.created) == (first.task.id, False)
    assert allowed.task.id == first.task.id
    with pytest.raises(leaseq.IdempotencyKeyReusedError):
        client.enqueue("t", {"a": 2}, idempotency_key="k")


def test_many_tasks_are_answered_one_by_one(client: leaseq.Client) -> None:
    tasks = [leaseq.NewTask(type="t") for _ in range(2300)]
    tasks[1500] = leaseq.NewTask(type="no name")

    outcomes = client.enqueue_many(tasks)

    refused = [n for n, outcome in enumerate(outcomes) if not isinstance(outcome, leaseq.Enqueued)]
    assert len(outcomes) == 2300
    assert refused == [1500]
    assert isinstance(outcomes[1500], leaseq.InvalidArgumentError)


def test_no_tasks_are_answered_with_nothing(client: leaseq.Client) -> None:
    assert client.enqueue_many([]) == []


def test_a_task_is_called_off_started_anew_and_deleted(client: leaseq.Client) -> None:
    task_id = client.enqueue("t").task.id

    client.cancel(task_id)
    cancelled = client.get(task_id).status
    client.requeue(task_id)
    requeued = client.get(task_id).status
    with pytest.raises(leaseq.TaskNotFinishedError):
        client.delete(task_id)
    client.cancel(task_id)
    client.delete(task_id)

    assert (cancelled, requeued) == (leaseq.Status.CANCELLED, leaseq.Status.QUEUED)
    with pytest.raises(leaseq.TaskNotFoundError):
        client.get(task_id)


def test_a_task_that_is_queued_cannot_be_requeued(client: leaseq.Client) -> None:
    task_id = client.enqueue("t").task.id

    with pytest.raises(leaseq.TaskNotDeadError):
        client.requeue(task_id)


def test_tasks_are_listed_page_by_page(client: leaseq.Client) -> None:
    ids = [client.enqueue("t", {"n": n}, queue="q").task.id for n in range(3)]
    client.enqueue("t", queue="other")

    first = client.list_tasks(queue="q", statuses=["queued"], size=2, with_payload=True)
    second = client.list_tasks(queue="q", size=2, cursor=first.next_cursor)

    assert [task.id for task in first.tasks + second.tasks] == sorted(ids, reverse=True)
    assert first.tasks[0].payload == '{"n": 2}'
    assert second.tasks[0].payload is None


def test_a_status_that_is_none_is_refused(client: leaseq.Client) -> None:
    with pytest.raises(leaseq.InvalidArgumentError, match="statuses: 'done' is none of queued"):
        client.list_tasks(statuses=["done"])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("idempotency_kee", "'idempotency_kee'; did you mean 'idempotency_key'\\?"),
        ("colour", "'colour'$"),
    ],
)
def test_an_option_of_a_task_that_is_none_is_refused(
    option: str, said: str, client: leaseq.Client
) -> None:
    options: Any = {option: "k"}

    with pytest.raises(TypeError, match=f"unexpected keyword argument {said}"):
        client.enqueue("t", {}, **options)

    assert client.list_tasks().tasks == ()


def test_an_option_of_a_list_that_is_none_is_refused(client: leaseq.Client) -> None:
    options: Any = {"status": "dead"}

    with pytest.raises(TypeError, match="argument 'status'; did you mean 'statuses'\\?"):
        client.list_tasks(**options)


def test_a_queue_is_paused_and_resumed(client: leaseq.Client) -> None:
    client.pause_queue("q")
    [paused] = client.list_queues()
    client.resume_queue("q")
    [resumed] = client.list_queues()

    assert (paused.name, paused.paused, resumed.paused) == ("q", True, False)


def test_a_closed_client_says_so() -> None:
    client = leaseq.connect(URL)

    client.close()
    client.close()

    with pytest.raises(RuntimeError, match="not open"):
        client.list_queues()


async def test_the_async_client_does_the_same(async_client: leaseq.AsyncClient) -> None:
    enqueued = await async_client.enqueue("t", {"a": 1}, queue="q")
    await async_client.cancel(enqueued.task.id)
    await async_client.requeue(enqueued.task.id)
    await async_client.pause_queue("q")

    page = await async_client.list_tasks(queue="q")

    assert [task.id for task in page.tasks] == [enqueued.task.id]
    assert [queue.paused for queue in await async_client.list_queues()] == [True]


async def test_an_async_client_is_opened_and_closed_by_hand() -> None:
    client = await leaseq.connect_async(URL).open()

    await client.enqueue("t")
    await client.close()
    await client.close()

    with pytest.raises(RuntimeError, match="not open"):
        await client.list_queues()


async def test_an_async_client_that_is_not_open_says_so() -> None:
    with pytest.raises(RuntimeError, match="not open"):
        await leaseq.connect_async(URL).enqueue("t")


@pytest.mark.parametrize("url", ["", "tasks.db", "mysql://u:hunter2@h"])
async def test_nobody_connects_to_nonsense(url: str) -> None:
    with pytest.raises(leaseq.InvalidArgumentError, match="url: ") as refusal:
        leaseq.connect(url)
    with pytest.raises(leaseq.InvalidArgumentError, match="url: "):
        await leaseq.connect_async(url).open()

    assert "hunter2" not in str(refusal.value)
