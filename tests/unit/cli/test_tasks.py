from __future__ import annotations

import pytest

from cli_runs import Run, enqueue, give_up, lease, status_of
from leaseq.domain.requests import Complete
from leaseq.domain.task import Status
from leaseq.entrypoints.connection import Connection, run_blocking

MISSING = "01980000-0000-7000-8000-000000000000"


def test_tasks_are_listed_newest_first_under_a_header(run: Run, connection: Connection) -> None:
    ids = enqueue(connection, 3)

    ran = run("tasks", "list")

    assert ran.rows[0][:4] == ["id", "queue", "type", "status"]
    assert [row[0] for row in ran.rows[1:]] == sorted(ids, reverse=True)


def test_tasks_are_listed_by_what_they_are(run: Run, connection: Connection) -> None:
    enqueue(connection, queue="other")
    [dead] = give_up(connection, queue="mine")
    [queued] = enqueue(connection, queue="mine")

    def listed(*arguments: str) -> list[str]:
        document = run("tasks", "list", "--json", "--queue", "mine", *arguments).document
        return [task["id"] for task in document["tasks"]]

    assert listed() == [queued, dead]
    assert listed("--status", "failed") == [dead]
    assert listed("--status", "failed", "--status", "queued") == [queued, dead]
    assert listed("--type", "other") == []


def test_a_long_list_goes_on_where_it_ended(run: Run, connection: Connection) -> None:
    ids = enqueue(connection, 5)

    first = run("tasks", "list", "--json", "--limit", "3").document
    second = run("tasks", "list", "--json", "--cursor", first["next_cursor"]).document
    hint = run("tasks", "list", "--limit", "3")

    listed = [task["id"] for task in first["tasks"] + second["tasks"]]
    assert listed == sorted(ids, reverse=True)
    assert second["next_cursor"] == ""
    assert f"--cursor {first['next_cursor']}" in hint.err


def test_more_tasks_than_one_page_holds_are_listed(run: Run, connection: Connection) -> None:
    enqueue(connection, 1000)
    enqueue(connection, 5)

    ran = run("tasks", "list", "--json", "--limit", "1004")

    assert len(ran.document["tasks"]) == 1004
    assert ran.document["next_cursor"]


def test_a_task_is_shown_with_its_errors(run: Run, connection: Connection) -> None:
    [task_id] = give_up(connection, message="no such user")

    ran = run("tasks", "show", task_id)
    document = run("tasks", "show", "--json", task_id).document

    assert "ValueError: no such user" in ran.out
    assert "  line" in ran.out
    assert document["errors"][0]["message"] == "no such user"
    assert document["last_error"] == "ValueError: no such user"


def test_a_result_is_shown_as_the_json_it_is(run: Run, connection: Connection) -> None:
    [task_id] = enqueue(connection)
    [leased] = lease(connection)
    done = Complete(ref=leased.ref, result='{"n": 12345678901234567890.10}')
    run_blocking(connection.queue.settle([done]))

    ran = run("tasks", "show", "--json", task_id)

    assert '"result": {"n": 12345678901234567890.10}' in ran.out


@pytest.mark.parametrize("command", ["list", "show"])
def test_an_error_cannot_play_with_the_terminal(
    command: str, run: Run, connection: Connection
) -> None:
    [task_id] = give_up(connection, message="[red]\x1b[31mred\x1b[2J[/red]")

    ran = run("tasks", command, *([task_id] if command == "show" else []))

    assert r"[red]\x1b[31mred\x1b[2J[/red]" in ran.out
    assert "\x1b" not in ran.out


def test_a_task_that_is_not_there_is_refused(run: Run) -> None:
    ran = run("tasks", "show", "01980000-0000-7000-8000-000000000000")

    assert ran.code == 1
    assert ran.err == "leaseq: no task has the id 01980000-0000-7000-8000-000000000000\n"


def test_tasks_are_cancelled(run: Run, connection: Connection) -> None:
    ids = enqueue(connection, 2)

    ran = run("tasks", "cancel", *ids)

    assert (ran.code, ran.out) == (0, "cancelled 2 tasks\n")
    assert {status_of(connection, task_id) for task_id in ids} == {Status.CANCELLED}


def test_what_could_not_be_done_is_told_one_by_one(run: Run, connection: Connection) -> None:
    [queued] = enqueue(connection)
    [dead] = give_up(connection, queue="q")

    ran = run("tasks", "requeue", queued, dead, MISSING)
    [refused] = run("tasks", "requeue", "--json", queued).document["refused"]

    assert ran.code == 1
    assert ran.out == "requeued 1 task\n"
    assert f"task {queued} is queued" in ran.err
    assert f"no task has the id {MISSING}" in ran.err
    assert status_of(connection, dead) is Status.QUEUED
    assert refused["id"] == queued
    assert refused["error"] == "TaskNotDeadError"
