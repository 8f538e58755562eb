"""Holds docs/cli.md to the program."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cli_commands import Command, commands
from cli_runs import Run, enqueue, one_of_each
from leaseq.domain.task import Status
from leaseq.entrypoints.connection import Connection

PAGE = (Path(__file__).parents[3] / "docs" / "cli.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(.+?)` \| (.*) \|$", re.MULTILINE)
FREE_FORM = {"payload", "depths"}
"""What users decide the keys of, or the state of the queue."""


def section(title: str) -> str:
    found = re.search(
        rf"^##+ {re.escape(title)}\n(.*?)(?=^##+ |\Z)", PAGE, re.DOTALL | re.MULTILINE
    )
    assert found, f"docs/cli.md has no section {title}"
    return found[1]


def documented(command: Command) -> set[tuple[str, str]]:
    own = section(f"`leaseq {command.name}`")
    groups = re.findall(r"\[(options of [a-z ]+)\]\(#", own)
    texts = [own, *(section(group.capitalize()) for group in groups)]
    return {(found[1], found[2]) for text in texts for found in ROW.finditer(text)}


@pytest.mark.parametrize("command", commands(), ids=lambda command: command.name)
def test_the_page_names_what_a_command_takes_and_nothing_else(command: Command) -> None:
    taken = {(each.spelling, each.help) for each in command.parameters}

    assert documented(command) == taken


def test_the_page_has_a_section_for_each_command_and_no_other() -> None:
    titles = re.findall(r"^### `leaseq (.+)`$", PAGE, re.MULTILINE)

    assert titles == [command.name for command in commands()]


def shape(value: Any) -> Any:
    """Return a JSON value without what may differ from task to task."""
    match value:
        case dict():
            return {
                key: "free" if key in FREE_FORM and inner is not None else shape(inner)
                for key, inner in value.items()
            }
        case list():
            return [shape(inner) for inner in value[:1]]
        case int() | float() if not isinstance(value, bool):
            return "number"
        case _:
            return type(value).__name__


def example(name: str) -> Any:
    found = re.search(rf"<!-- json: {name} -->\n```json\n(.*?)```", PAGE, re.DOTALL)
    assert found, f"docs/cli.md has no example of {name}"
    return json.loads(found[1])


def test_a_task_has_the_documented_shape(run: Run, connection: Connection) -> None:
    tasks = one_of_each(connection, queue="q")
    documented_shape = shape(example("a task"))

    dead = shape(run("tasks", "show", "--json", tasks[Status.DEAD]).document)
    new = run("enqueue", "--json", "--type", "t", "{}").document

    assert dead | {"idempotency_key": "str"} == documented_shape
    assert new.keys() == documented_shape.keys() | {"created"}


def test_a_list_has_the_documented_shape(run: Run, connection: Connection) -> None:
    enqueue(connection)

    listed = run("tasks", "list", "--json").document

    assert listed.keys() == example("a list").keys()
    assert listed["tasks"][0].keys() == example("a task").keys()


def test_what_became_of_many_tasks_has_the_documented_shape(
    run: Run, connection: Connection
) -> None:
    tasks = one_of_each(connection, queue="q")

    ran = run("dead", "requeue", tasks[Status.QUEUED], tasks[Status.DEAD], "--json")

    assert shape(ran.document) == shape(example("many tasks"))


def test_queues_have_the_documented_shape(run: Run, connection: Connection) -> None:
    enqueue(connection, queue="q")

    listed = run("queues", "list", "--json").document
    paused = run("queues", "pause", "q", "--json").document

    assert shape(listed) == shape(example("queues"))
    assert listed["queues"][0]["depths"] == example("queues")["queues"][0]["depths"]
    assert shape(paused) == shape(example("a pause"))


def test_a_migration_has_the_documented_shape(run: Run, tmp_path: Path) -> None:
    document = run("migrate", "--json", "--storage", f"sqlite:///{tmp_path}/tasks.db").document

    assert shape(document) == shape(example("migrations"))
