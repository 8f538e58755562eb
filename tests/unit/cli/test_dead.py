from __future__ import annotations

from cli_runs import Run, enqueue, give_up, status_of
from leaseq.domain.task import Status
from leaseq.entrypoints.connection import Connection, run_blocking


def test_dead_are_those_that_were_given_up(run: Run, connection: Connection) -> None:
    enqueue(connection)
    given_up = give_up(connection, queue="q")

    ran = run("dead", "list", "--json")
    shown = run("dead", "show", "--json", *given_up)

    assert [task["id"] for task in ran.document["tasks"]] == given_up
    assert shown.document["status"] == "failed"


def test_requeue_all_touches_only_what_was_given_up(run: Run, connection: Connection) -> None:
    given_up = give_up(connection, 3, queue="q")
    elsewhere = give_up(connection, queue="other")
    [cancelled] = enqueue(connection, queue="q")
    run_blocking(connection.admin.cancel([cancelled]))

    ran = run("dead", "requeue", "--all", "--queue", "q")

    assert (ran.code, ran.out) == (0, "requeued 3 tasks\n")
    assert {status_of(connection, task_id) for task_id in given_up} == {Status.QUEUED}
    assert status_of(connection, elsewhere[0]) is Status.FAILED
    assert status_of(connection, cancelled) is Status.CANCELLED


def test_a_dry_run_only_counts(run: Run, connection: Connection) -> None:
    given_up = give_up(connection, 30, queue="q")

    ran = run("dead", "requeue", "--all", "--queue", "q", "--dry-run")
    document = run("dead", "requeue", "--all", "--queue", "q", "--dry-run", "--json").document

    assert (ran.code, ran.out) == (0, "would requeue 30 tasks\n")
    assert document == {"matched": 30, "done": 0, "refused": []}
    assert status_of(connection, given_up[0]) is Status.FAILED


def test_many_tasks_need_a_yes(run: Run, connection: Connection) -> None:
    give_up(connection, 21, queue="q")

    without = run("dead", "delete", "--all", "--queue", "q")
    with_yes = run("dead", "delete", "--all", "--queue", "q", "--yes", "--json")

    assert without.code == 2
    assert "--yes" in without.err
    assert "delete 21 tasks" in without.err
    assert with_yes.document == {"matched": 21, "done": 21, "refused": []}


def test_requeue_all_of_one_type(run: Run, connection: Connection) -> None:
    give_up(connection, 2, queue="q")

    ran = run("dead", "requeue", "--all", "--queue", "q", "--type", "other", "--json")

    assert ran.document == {"matched": 0, "done": 0, "refused": []}
