from __future__ import annotations

import pytest

from cli_runs import Run, enqueue, give_up
from leaseq.domain.requests import NewTask
from leaseq.entrypoints.connection import Connection, run_blocking


def give_up_in_turn(connection: Connection, count: int) -> list[str]:
    """Give tasks up, every second one for a timeout, and return these, newest first."""
    timeouts = []
    for _ in range(count):
        timeouts += give_up(connection, message="read timeout")
        give_up(connection, message="no such user")
    return sorted(timeouts, reverse=True)


def test_dead_letters_are_listed_by_a_part_of_their_error(run: Run, connection: Connection) -> None:
    timeouts = give_up_in_turn(connection, 3)

    exact = run("dead", "list", "--json", "--error", "read time").document
    other_case = run("dead", "list", "--json", "--error", "Read Time").document

    assert [task["id"] for task in exact["tasks"]] == timeouts
    assert exact["next_cursor"] == ""
    assert other_case == {"tasks": [], "next_cursor": ""}


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_a_list_by_error_goes_on_behind_the_last_task_it_told(
    limit: int, run: Run, connection: Connection
) -> None:
    timeouts = give_up_in_turn(connection, 4)
    listed: list[str] = []
    cursor = ""

    while True:
        page = run(
            *("dead", "list", "--json", "--error", "timeout"),
            *("--limit", str(limit), "--cursor", cursor),
        ).document
        listed += [task["id"] for task in page["tasks"]]
        assert len(page["tasks"]) <= limit
        cursor = page["next_cursor"]
        if not cursor:
            break

    assert listed == timeouts


def test_a_list_goes_on_behind_a_task(run: Run, connection: Connection) -> None:
    oldest, middle, newest = sorted(enqueue(connection, 3))

    after_newest = run("tasks", "list", "--json", "--cursor", newest).document

    assert [task["id"] for task in after_newest["tasks"]] == [middle, oldest]


def test_all_tasks_are_listed_over_all_pages(run: Run, connection: Connection) -> None:
    for count in (1000, 1000, 1):
        enqueue(connection, count)

    document = run("tasks", "list", "--all", "--json").document
    table = run("tasks", "list", "--all")

    assert len({task["id"] for task in document["tasks"]}) == 2001
    assert document["next_cursor"] == ""
    assert [row[0] for row in table.rows[1:]] == [task["id"] for task in document["tasks"]]
    assert table.rows[0][0] == "id"
    assert table.err == ""


def test_tasks_are_listed_by_their_key(run: Run, connection: Connection) -> None:
    run_blocking(connection.queue.enqueue([NewTask(type="t", idempotency_key="k")]))
    enqueue(connection)

    listed = run("tasks", "list", "--json", "--key", "k").document["tasks"]

    assert [task["idempotency_key"] for task in listed] == ["k"]


def test_an_empty_list_has_a_header_and_an_empty_array(run: Run) -> None:
    assert run("tasks", "list").rows[0][0] == "id"
    assert run("tasks", "list", "--json").document == {"tasks": [], "next_cursor": ""}


def test_fifty_tasks_are_listed_if_nothing_is_said(run: Run, connection: Connection) -> None:
    enqueue(connection, 51)

    assert len(run("tasks", "list", "--json").document["tasks"]) == 50


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("boom", "ValueError: boom"),
        ("x" * 88, "ValueError: " + "x" * 88),
        ("x" * 89, "ValueError: " + "x" * 85 + "..."),
        ("\x1b" * 40, "ValueError: " + ("\\x1b" * 40)[:85] + "..."),
        ("one\ntwo", "ValueError: one..."),
    ],
    ids=["short", "just fits", "long", "spelt out", "lines"],
)
def test_lists_show_one_short_line_of_an_error(
    message: str, shown: str, run: Run, connection: Connection
) -> None:
    give_up(connection, message=message)

    [_, dead] = run("dead", "list").rows
    [_, task] = run("tasks", "list").rows
    [whole] = run("dead", "list", "--json").document["tasks"]

    assert dead[-1] == task[-1] == shown
    assert whole["last_error"] == f"ValueError: {message}"
