from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from cli_runs import Ran, Run, enqueue, give_up, lease, one_of_each, status_of
from leaseq.domain.errors import StorageUnavailableError, TaskQueueError
from leaseq.domain.requests import NewTask, TaskFilter
from leaseq.domain.task import Status
from leaseq.entrypoints.cli.bulk import Bulk
from leaseq.entrypoints.cli.choosing import Choice, Wanted
from leaseq.entrypoints.connection import Connection, run_blocking


@pytest.fixture
def each(connection: Connection) -> dict[Status, str]:
    one_of_each(connection, queue="elsewhere")
    return one_of_each(connection, queue="q")


def changed(connection: Connection, each: dict[Status, str]) -> dict[Status, Status]:
    """Return what became of the tasks that have another status than before."""
    after = {status: status_of(connection, task_id) for status, task_id in each.items()}
    return {old: new for old, new in after.items() if old != new}


def assert_printed_as_changed(ran: Ran, count: int) -> None:
    assert ran.code == 0, ran.err
    assert ran.document == {"matched": count, "done": count, "refused": []}


@pytest.mark.parametrize("status", [Status.FAILED, Status.DEAD, Status.CANCELLED])
def test_requeue_all_touches_only_the_status_that_was_asked_for(
    status: Status, run: Run, connection: Connection, each: dict[Status, str]
) -> None:
    ran = run("tasks", "requeue", "--all", "--queue", "q", "--status", status, "--json")

    assert_printed_as_changed(ran, 1)
    assert changed(connection, each) == {status: Status.QUEUED}


def test_dead_requeue_all_touches_only_what_was_given_up(
    run: Run, connection: Connection, each: dict[Status, str]
) -> None:
    ran = run("dead", "requeue", "--all", "--queue", "q", "--json")

    assert_printed_as_changed(ran, 2)
    assert changed(connection, each) == {
        Status.FAILED: Status.QUEUED,
        Status.DEAD: Status.QUEUED,
    }


def test_dead_requeue_all_of_the_dead_leaves_the_failed(
    run: Run, connection: Connection, each: dict[Status, str]
) -> None:
    ran = run("dead", "requeue", "--all", "--queue", "q", "--status", "dead", "--json")

    assert_printed_as_changed(ran, 1)
    assert changed(connection, each) == {Status.DEAD: Status.QUEUED}


def test_cancel_all_touches_only_what_has_not_ended(
    run: Run, connection: Connection, each: dict[Status, str]
) -> None:
    ran = run("tasks", "cancel", "--all", "--queue", "q", "--json")

    assert_printed_as_changed(ran, 2)
    assert changed(connection, each) == {Status.QUEUED: Status.CANCELLED}


def test_dead_delete_all_removes_only_what_was_given_up(run: Run, each: dict[Status, str]) -> None:
    ran = run("dead", "delete", "--all", "--queue", "q", "--json")

    left = run("tasks", "list", "--queue", "q", "--json").document["tasks"]
    assert_printed_as_changed(ran, 2)
    assert {task["id"] for task in left} == {
        task_id for status, task_id in each.items() if status not in {Status.FAILED, Status.DEAD}
    }


@pytest.mark.parametrize(
    "command",
    [
        ["tasks", "cancel"],
        ["tasks", "requeue", "--status", "dead"],
        ["dead", "requeue"],
        ["dead", "delete"],
    ],
    ids=" ".join,
)
def test_a_dry_run_changes_nothing(
    command: list[str], run: Run, connection: Connection, each: dict[Status, str]
) -> None:
    ran = run(*command, "--all", "--queue", "q", "--dry-run")

    assert ran.code == 0
    assert ran.out.startswith("would ")
    assert changed(connection, each) == {}


def test_an_error_text_narrows_what_is_requeued(run: Run, connection: Connection) -> None:
    timeouts = give_up(connection, 2, queue="q", message="read timeout")
    [other] = give_up(connection, queue="q", message="no such user")

    ran = run("dead", "requeue", "--all", "--queue", "q", "--error", "timeout", "--json")

    assert_printed_as_changed(ran, 2)
    assert {status_of(connection, task_id) for task_id in timeouts} == {Status.QUEUED}
    assert status_of(connection, other) is Status.FAILED


def test_a_key_narrows_what_is_cancelled(run: Run, connection: Connection) -> None:
    run_blocking(connection.queue.enqueue([NewTask(type="t", queue="q", idempotency_key="k")]))
    [other] = enqueue(connection, queue="q")

    ran = run("tasks", "cancel", "--all", "--queue", "q", "--key", "k", "--json")

    assert_printed_as_changed(ran, 1)
    assert status_of(connection, other) is Status.QUEUED


def test_an_id_given_twice_counts_once(run: Run, connection: Connection) -> None:
    [task_id] = enqueue(connection)

    ran = run("tasks", "cancel", task_id, task_id)

    assert ran.out == "cancelled 1 task\n"


def test_a_leased_task_is_asked_to_stop(run: Run, connection: Connection) -> None:
    enqueue(connection)
    [leased] = lease(connection)

    ran = run("tasks", "cancel", leased.task.id)

    assert (ran.code, ran.out) == (0, "cancelled 1 task\n")
    assert status_of(connection, leased.task.id) is Status.LEASED


def test_more_than_one_call_takes_are_all_done(run: Run, connection: Connection) -> None:
    for _ in range(2):
        enqueue(connection, 1000, queue="q")
    enqueue(connection, 1, queue="q")

    ran = run("tasks", "cancel", "--all", "--queue", "q", "--yes", "--json")

    assert_printed_as_changed(ran, 2001)
    [queue] = run("queues", "list", "--json").document["queues"]
    assert queue["depths"] == {"cancelled": {"count": 2001, "exact": True}}


@pytest.mark.parametrize("trouble", [StorageUnavailableError("gone"), KeyboardInterrupt()])
def test_what_was_done_is_told_when_the_rest_cannot_be(
    trouble: BaseException, connection: Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    answers: Iterator[list[TaskQueueError | None]] = iter([[None] * 500])

    def act(_: Sequence[str]) -> list[TaskQueueError | None]:
        for answer in answers:
            return answer
        raise trouble

    choice = Choice(
        ids=tuple(str(number) for number in range(700)), wanted=Wanted(where=TaskFilter())
    )

    with pytest.raises(type(trouble)):
        Bulk(verb="requeue", done="requeued", act=act, yes=True).carry_out(choice, connection.admin)

    assert capsys.readouterr().out == "requeued 500 of 700 tasks\n"
