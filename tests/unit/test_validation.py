from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import attrs
import pytest

from leaseq.domain import validation
from leaseq.domain.errors import InvalidArgumentError
from leaseq.domain.ids import TaskId
from leaseq.domain.requests import LeaseRef, LeaseRequest, NewTask, PageRequest, TaskFilter
from leaseq.domain.retry import RetryPolicy
from leaseq.domain.task import Queued, Status, Task

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
YEAR = timedelta(days=365)
AN_ID = TaskId("01890a5d-ac96-774b-bcce-b302099a8057")


def made(new: NewTask) -> Task:
    return validation.make_task(new, task_id=AN_ID, now=NOON)


def faults(check: Callable[[], object]) -> list[str]:
    with pytest.raises(InvalidArgumentError) as refused:
        check()
    return [violation.field for violation in refused.value.violations]


def test_what_is_not_said_has_its_default() -> None:
    task = made(NewTask(type="t"))

    assert task == Task(
        id=AN_ID,
        queue=task.queue,
        type=task.type,
        payload=task.payload,
        payload_bytes=2,
        fingerprint=task.fingerprint,
        idempotency_key=None,
        priority=0,
        max_attempts=10,
        retry=RetryPolicy(base=timedelta(seconds=2), cap=timedelta(hours=1)),
        state=Queued(),
        run_after=NOON,
        attempts=0,
        releases=0,
        lease_number=0,
        errors=(),
        settled=None,
        version=1,
        created_at=NOON,
        updated_at=NOON,
    )
    assert (task.queue, task.type, task.payload) == ("default", "t", "{}")


def test_what_is_said_is_kept() -> None:
    task = made(
        NewTask(
            type="T.t_t:1-2",
            queue="Q" * 100,
            payload='{"\u00e9":1}',
            idempotency_key="k" * 255,
            priority=255,
            max_attempts=1000,
            delay=YEAR,
            retry_base=timedelta(milliseconds=1),
            retry_cap=timedelta(days=30),
        )
    )

    assert (task.type, task.queue, task.payload) == ("T.t_t:1-2", "Q" * 100, '{"\u00e9": 1}')
    assert task.payload_bytes == len('{"\u00e9": 1}'.encode())
    assert (task.idempotency_key, task.priority, task.max_attempts) == ("k" * 255, 255, 1000)
    assert task.run_after == NOON + YEAR
    assert task.retry == RetryPolicy(base=timedelta(milliseconds=1), cap=timedelta(days=30))


ACCEPTED_TASKS = {
    "lowest priority": NewTask(type="t", priority=0),
    "one attempt": NewTask(type="t", max_attempts=1),
    "no delay": NewTask(type="t", delay=timedelta(0)),
    "empty payload": NewTask(type="t", payload=""),
    "four-byte characters": NewTask(type="t", idempotency_key="\U0001f600" * 63),
    "blank inside a key": NewTask(type="t", idempotency_key="a b"),
    "a year ahead": NewTask(type="t", run_after=NOON + YEAR),
    "long ago": NewTask(
        type="t", run_after=datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    ),
    "largest base": NewTask(type="t", retry_base=timedelta(days=1)),
    "smallest cap": NewTask(type="t", retry_cap=timedelta(milliseconds=1)),
}


@pytest.mark.parametrize("new", ACCEPTED_TASKS.values(), ids=ACCEPTED_TASKS)
def test_accepts_a_task_at_the_bounds(new: NewTask) -> None:
    made(new)


REFUSED_TASKS: dict[str, tuple[dict[str, Any], list[str]]] = {
    "empty type": ({"type": ""}, ["type"]),
    "blank in a type": ({"type": "a b"}, ["type"]),
    "newline at the end of a type": ({"type": "a\n"}, ["type"]),
    "non-ASCII type": ({"type": "\u00e9"}, ["type"]),
    "long type": ({"type": "t" * 101}, ["type"]),
    "quote in a queue": ({"queue": 'a"; DROP TABLE x;--'}, ["queue"]),
    "long queue": ({"queue": "q" * 101}, ["queue"]),
    "payload is an array": ({"payload": "[1]"}, ["payload"]),
    "fault inside a payload": ({"payload": '{"a": ["\\u0000"]}'}, ["payload.a[0]"]),
    "priority too low": ({"priority": -1}, ["priority"]),
    "priority too high": ({"priority": 256}, ["priority"]),
    "no attempts": ({"max_attempts": 0}, ["max_attempts"]),
    "too many attempts": ({"max_attempts": 1001}, ["max_attempts"]),
    "long key": ({"idempotency_key": "k" * 256}, ["idempotency_key"]),
    "key long in bytes": ({"idempotency_key": "\U0001f600" * 64}, ["idempotency_key"]),
    "key begins with a blank": ({"idempotency_key": " k"}, ["idempotency_key"]),
    "key ends with a blank": ({"idempotency_key": "k\u00a0"}, ["idempotency_key"]),
    "control character in a key": ({"idempotency_key": "a\x7fb"}, ["idempotency_key"]),
    "NUL in a key": ({"idempotency_key": "a\x00b"}, ["idempotency_key"]),
    "surrogate in a key": ({"idempotency_key": "a\ud800"}, ["idempotency_key"]),
    "negative delay": ({"delay": -MICROSECOND}, ["delay"]),
    "long delay": ({"delay": YEAR + MICROSECOND}, ["delay"]),
    "longest delay": ({"delay": timedelta.max}, ["delay"]),
    "far ahead": ({"run_after": NOON + YEAR + MICROSECOND}, ["run_after"]),
    "end of time": ({"run_after": datetime.max.replace(tzinfo=UTC)}, ["run_after"]),
    "no time zone": ({"run_after": datetime(2026, 1, 1)}, ["run_after"]),  # noqa: DTZ001
    "both": ({"delay": timedelta(0), "run_after": NOON}, ["delay"]),
    "small base": ({"retry_base": timedelta(milliseconds=1) - MICROSECOND}, ["retry.base"]),
    "large base": ({"retry_base": timedelta(days=1) + MICROSECOND}, ["retry.base"]),
    "small cap": ({"retry_cap": timedelta(milliseconds=1) - MICROSECOND}, ["retry.cap"]),
    "large cap": ({"retry_cap": timedelta(days=30) + MICROSECOND}, ["retry.cap"]),
    "cap below base": (
        {"retry_base": timedelta(seconds=3), "retry_cap": timedelta(seconds=2)},
        ["retry.cap"],
    ),
    "every fault is named": (
        {"queue": " ", "type": "", "payload": "{", "priority": 999, "max_attempts": -1},
        ["queue", "type", "payload", "priority", "max_attempts"],
    ),
}


@pytest.mark.parametrize(("fields", "named"), REFUSED_TASKS.values(), ids=REFUSED_TASKS)
def test_refuses_a_task_past_the_bounds(fields: dict[str, Any], named: list[str]) -> None:
    new = NewTask(**{"type": "t", **fields})

    assert faults(lambda: made(new)) == named


@pytest.mark.parametrize("delay", [timedelta(0), MICROSECOND, timedelta(hours=1)])
def test_a_delay_is_counted_from_now(delay: timedelta) -> None:
    assert made(NewTask(type="t", delay=delay)).run_after == NOON + delay


def test_a_moment_in_the_past_means_now() -> None:
    assert made(NewTask(type="t", run_after=NOON - MICROSECOND)).run_after == NOON


def test_a_moment_ahead_is_kept_in_utc() -> None:
    zone = timezone(timedelta(hours=5, minutes=30))
    ahead = (NOON + timedelta(hours=1)).astimezone(zone)

    task = made(NewTask(type="t", run_after=ahead))

    assert task.run_after == ahead
    assert task.run_after.tzinfo is UTC


def test_a_missing_base_is_no_longer_than_the_cap() -> None:
    retry = made(NewTask(type="t", retry_cap=timedelta(seconds=1))).retry

    assert retry == RetryPolicy(base=timedelta(seconds=1), cap=timedelta(seconds=1))


def test_a_missing_cap_is_no_shorter_than_the_base() -> None:
    retry = made(NewTask(type="t", retry_base=timedelta(hours=2))).retry

    assert retry == RetryPolicy(base=timedelta(hours=2), cap=timedelta(hours=2))


def test_lease_terms_have_defaults() -> None:
    terms = validation.lease_terms(LeaseRequest(worker_id="w"))

    assert terms == validation.LeaseTerms(
        worker_id=terms.worker_id,
        queues=terms.queues,
        types=(),
        lease_duration=timedelta(seconds=30),
        max_tasks=1,
        wait=timedelta(0),
        strict_order=False,
    )
    assert (terms.worker_id, terms.queues) == ("w", ("default",))


def test_lease_terms_keep_each_name_once_and_cut_the_wait() -> None:
    terms = validation.lease_terms(
        LeaseRequest(
            worker_id="w",
            queues=("b", "a", "b"),
            types=("y", "x", "y"),
            lease_duration=timedelta(hours=12),
            max_tasks=1000,
            wait=timedelta(seconds=30) + MICROSECOND,
            strict_order=True,
        )
    )

    assert (terms.queues, terms.types) == (("b", "a"), ("y", "x"))
    assert terms.lease_duration == timedelta(hours=12)
    assert (terms.max_tasks, terms.wait) == (1000, timedelta(seconds=30))
    assert terms.strict_order


ACCEPTED_LEASES = {
    "a hundred names": LeaseRequest(worker_id="w", queues=("q",) * 100, types=("t",) * 100),
    "shortest lease": LeaseRequest(worker_id="w", lease_duration=timedelta(seconds=1)),
}


@pytest.mark.parametrize("request_", ACCEPTED_LEASES.values(), ids=ACCEPTED_LEASES)
def test_accepts_a_lease_at_the_bounds(request_: LeaseRequest) -> None:
    validation.lease_terms(request_)


REFUSED_LEASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no worker": ({"worker_id": ""}, ["worker_id"]),
    "bad queue": ({"queues": ("q", "")}, ["queues[1]"]),
    "bad type": ({"types": ("a b",)}, ["types[0]"]),
    "too many queues": ({"queues": ("q",) * 101}, ["queues"]),
    "too many types": ({"types": ("t",) * 101}, ["types"]),
    "many bad names": ({"types": ("",) * 2000}, ["types", *(f"types[{i}]" for i in range(100))]),
    "short lease": ({"lease_duration": timedelta(seconds=1) - MICROSECOND}, ["lease_duration"]),
    "long lease": ({"lease_duration": timedelta(hours=12) + MICROSECOND}, ["lease_duration"]),
    "no tasks": ({"max_tasks": 0}, ["max_tasks"]),
    "too many tasks": ({"max_tasks": 1001}, ["max_tasks"]),
    "negative wait": ({"wait": -MICROSECOND}, ["wait"]),
}


@pytest.mark.parametrize(("fields", "named"), REFUSED_LEASES.values(), ids=REFUSED_LEASES)
def test_refuses_a_lease_past_the_bounds(fields: dict[str, Any], named: list[str]) -> None:
    request = attrs.evolve(LeaseRequest(worker_id="w"), **fields)

    assert faults(lambda: validation.lease_terms(request)) == named


def test_a_heartbeat_has_a_default() -> None:
    assert validation.heartbeat_duration("w", None) == timedelta(seconds=30)


def test_a_heartbeat_names_every_fault() -> None:
    assert faults(lambda: validation.heartbeat_duration("", timedelta(0))) == [
        "worker_id",
        "lease_duration",
    ]


@pytest.mark.parametrize("token", ["t", "t" * 100])
def test_a_lease_is_named_by_a_uuid_and_a_token(token: str) -> None:
    ref = LeaseRef(task_id=AN_ID.upper(), lease_token=token)

    assert validation.lease_ref(ref) == (AN_ID, token)


@pytest.mark.parametrize(
    ("task_id", "token", "named"),
    [
        ("nonsense", "t", ["task_id"]),
        (AN_ID + "0", "t", ["task_id"]),
        (AN_ID, "", ["lease_token"]),
        (AN_ID, "t" * 101, ["lease_token"]),
        ("", "", ["task_id", "lease_token"]),
    ],
)
def test_refuses_what_names_no_lease(task_id: str, token: str, named: list[str]) -> None:
    ref = LeaseRef(task_id=task_id, lease_token=token)

    assert faults(lambda: validation.lease_ref(ref)) == named


def test_a_task_id_is_a_uuid_in_any_case() -> None:
    assert validation.task_id(AN_ID.upper()) == AN_ID
    assert faults(lambda: validation.task_id("{" + AN_ID + "}")) == ["task_id"]


def test_a_result_is_any_json_or_nothing() -> None:
    assert validation.result("") is None
    assert validation.result("[1,2]") == "[1, 2]"


def test_a_result_that_cannot_be_kept_names_its_place() -> None:
    assert faults(lambda: validation.result("NaN")) == ["result"]
    assert faults(lambda: validation.result('{"a": "\\u0000"}')) == ["result.a"]


@pytest.mark.parametrize("span", [None, timedelta(0), YEAR])
def test_accepts_a_wait_within_a_year(span: timedelta | None) -> None:
    assert validation.retry_after(span) == span


@pytest.mark.parametrize("span", [-MICROSECOND, YEAR + MICROSECOND])
def test_refuses_a_wait_outside_of_a_year(span: timedelta) -> None:
    assert faults(lambda: validation.retry_after(span)) == ["retry_after"]


def test_a_batch_holds_at_most_a_thousand() -> None:
    validation.batch_size("tasks", [0] * 1000)

    assert faults(lambda: validation.batch_size("tasks", [0] * 1001)) == ["tasks"]


def test_a_queue_is_a_name() -> None:
    assert validation.queue_name("q") == "q"
    assert faults(lambda: validation.queue_name("")) == ["queue"]


def test_a_list_begins_after_its_cursor() -> None:
    everything = TaskFilter()

    assert validation.task_list(everything, PageRequest()) is None
    assert validation.task_list(everything, PageRequest(cursor=AN_ID.upper())) == AN_ID


@pytest.mark.parametrize("size", [1, 1000])
def test_accepts_a_page_at_the_bounds(size: int) -> None:
    wanted = TaskFilter(queue="q", type="t", statuses=(Status.DEAD,), idempotency_key="k")

    assert validation.task_list(wanted, PageRequest(size=size)) is None


@pytest.mark.parametrize(
    ("wanted", "page", "named"),
    [
        (TaskFilter(queue="a b"), PageRequest(), ["queue"]),
        (TaskFilter(type="a b"), PageRequest(), ["type"]),
        (TaskFilter(idempotency_key="k" * 256), PageRequest(), ["idempotency_key"]),
        (TaskFilter(), PageRequest(size=0), ["page_size"]),
        (TaskFilter(), PageRequest(size=1001), ["page_size"]),
        (TaskFilter(), PageRequest(cursor="nonsense"), ["cursor"]),
    ],
)
def test_refuses_a_list_past_the_bounds(
    wanted: TaskFilter, page: PageRequest, named: list[str]
) -> None:
    assert faults(lambda: validation.task_list(wanted, page)) == named


def test_an_error_says_each_fault_in_words() -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        made(NewTask(type="", priority=300))

    assert str(refused.value) == (
        "type: must be 1 to 100 of the characters A-Z a-z 0-9 . _ : -; "
        "priority: must be from 0 to 255"
    )
