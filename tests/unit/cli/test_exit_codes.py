from __future__ import annotations

from pathlib import Path

import pytest

from cli_commands import commands
from cli_runs import Run, one_of_each
from leaseq.entrypoints.connection import Connection

NOWHERE = "sqlite:////no-such-folder/tasks.db"
AWAY = ["--server", NOWHERE]
MISSING = "01980000-0000-7000-8000-000000000000"

# For each command what it is told, by the exit code. {queued} and {dead} are ids of such tasks.
CALLS: dict[str, dict[int, list[str]]] = {
    "migrate": {
        0: ["--storage", "sqlite:///{folder}/tasks.db"],
        1: ["--storage", NOWHERE],
        2: ["--storage", "mysql://h/db"],
    },
    "enqueue": {0: ["--type", "t"], 1: ["--type", "t", *AWAY], 2: ["--type", "no name"]},
    "tasks list": {0: [], 1: AWAY, 2: ["--limit", "0"]},
    "tasks show": {0: ["{dead}"], 1: [MISSING], 2: ["x"]},
    "tasks cancel": {0: ["{queued}"], 1: ["{dead}"], 2: ["{queued}", "x"]},
    "tasks requeue": {0: ["{dead}"], 1: ["{queued}"], 2: []},
    "dead list": {0: [], 1: AWAY, 2: ["--queue", "no name"]},
    "dead show": {0: ["{dead}"], 1: [MISSING], 2: []},
    "dead requeue": {0: ["{dead}"], 1: ["{queued}"], 2: []},
    "dead delete": {0: ["{dead}"], 1: ["{queued}"], 2: []},
    "queues list": {0: [], 1: AWAY, 2: ["--limit", "5"]},
    "queues pause": {0: ["q"], 1: ["q", *AWAY], 2: ["no name"]},
    "queues resume": {0: ["q"], 1: ["q", *AWAY], 2: ["no name"]},
}
# They run until they are stopped, and so belong to the tests with processes.
LASTING = {"server", "worker", "demo"}


def test_every_command_is_in_the_table() -> None:
    assert {command.name for command in commands()} == CALLS.keys() | LASTING


@pytest.mark.parametrize("as_json", [[], ["--json"]], ids=["for people", "as JSON"])
@pytest.mark.parametrize("code", [0, 1, 2])
@pytest.mark.parametrize("name", CALLS)
def test_the_exit_code_says_done_refused_or_misused(
    name: str, code: int, as_json: list[str], run: Run, connection: Connection, tmp_path: Path
) -> None:
    tasks = one_of_each(connection, queue="q")
    told = [
        part.format(folder=tmp_path, **{status.value: tasks[status] for status in tasks})
        for part in CALLS[name][code]
    ]

    ran = run(*name.split(), *told, *as_json)

    assert ran.code == code
    assert bool(code) == (bool(ran.err) or '"refused": [{' in ran.out)
    if as_json and ran.out:
        assert ran.out.count("\n") == 1
        assert isinstance(ran.document, dict)
