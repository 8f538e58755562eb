from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli_commands import commands
from cli_runs import Run
from leaseq.entrypoints.settings import unknown_variables


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["enqueue"], "--type"),
        (["enqueue", "--type", "t", "--delay", "soon"], "--delay"),
        (["enqueue", "--type", "t", "--run-after", "tomorrow"], "--run-after"),
        (["enqueue", "--type", "t", "--run-after", "2030-01-01"], "--run-after"),
        (["enqueue", "--type", "t", "--priority", "high"], "--priority"),
        (["enqueue", "--type", "t", "--server", "no where"], "--server"),
        (["enqueue", "--type", "t", "--server", "mysql://u:hunter2@h/"], "--server"),
        (["enqueue", "--type", "t", "@missing.json"], "PAYLOAD"),
        (["enqueue", "--type", "t", "--colour", "red"], "--colour"),
        (["tasks", "list", "--status", "done"], "--status"),
        (["tasks", "list", "--limit", "0"], "--limit"),
        (["tasks", "show"], "ID"),
        (["dead", "requeue"], "ID..."),
        (["dead", "requeue", "--all"], "--queue"),
        (["dead", "requeue", "--all", "--queue", "q", "some-id"], "--all"),
        (["dead", "requeue", "--queue", "q", "some-id"], "--queue"),
        (["dead", "delete", "--type", "t", "some-id"], "--type"),
        (["dead", "delete", "--error", "x", "some-id"], "--error"),
        (["dead", "delete", "--dry-run", "some-id"], "--dry-run"),
        (["dead", "list", "--status", "succeeded"], "--status"),
        (["dead", "list", "--all", "--limit", "5"], "--limit"),
        (["tasks", "cancel"], "ID..."),
        (["tasks", "cancel", "--all", "--queue", "q", "--status", "dead"], "--status"),
        (["tasks", "requeue", "--all", "--queue", "q"], "--status"),
        (["tasks", "requeue", "--all", "--queue", "q", "--status", "succeeded"], "--status"),
        (["tasks", "requeue", "--key", "k", "some-id"], "--key"),
        (["enqueue", "--type", "no name"], "--type: must be"),
        (["enqueue", "--type", "t", "--queue", "no name"], "--queue: must be"),
        (["enqueue", "--type", "t", "--priority", "256"], "--priority: must be from 0"),
        (["enqueue", "--type", "t", "--max-attempts", "0"], "--max-attempts: must be from 1"),
        (["enqueue", "--type", "t", "--retry-base", "0"], "--retry-base: must be from 1 ms"),
        (
            ["enqueue", "--type", "t", "--retry-base", "5m", "--retry-cap", "1m"],
            "--retry-cap: must be from --retry-base to",
        ),
        (["enqueue", "--type", "t", "--key", " k"], "--key: must not begin"),
        (["enqueue", "--type", "t", "--delay", "366d"], "--delay: must be from 0"),
        (
            ["enqueue", "--type", "t", "--delay", "5", "--run-after", "2030-01-31T12:00:00Z"],
            "--delay: must not be given together with --run-after",
        ),
        (["enqueue", "--type", "t", '{"a": NaN}'], "PAYLOAD: "),
        (["tasks", "list", "--cursor", "x"], "--cursor: must be"),
        (["tasks", "list", "--key", " k"], "--key: must not begin"),
        (["tasks", "show", "x"], "ID: must be"),
        (["tasks", "cancel", "x"], "ID: 'x' is no UUID"),
        (["dead", "requeue", "x"], "ID: 'x' is no UUID"),
        (["queues", "pause", "no name"], "QUEUE: must be"),
        (["queues", "resume", "no name"], "QUEUE: must be"),
    ],
    ids=" ".join,
)
def test_misuse_names_the_option(arguments: list[str], named: str, run: Run) -> None:
    ran = run(*arguments)

    assert ran.code == 2
    assert named in ran.err.splitlines()[-1]
    assert "hunter2" not in ran.err


def test_the_version_is_printed(run: Run) -> None:
    assert run("--version").out.startswith("leaseq 0.")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["-h"], ["tasks", "--help"], ["server", "--help"]], ids=" ".join
)
def test_help_is_given_without_a_server(arguments: list[str], run: Run) -> None:
    ran = run(*arguments)

    assert ran.code == 0
    assert "Usage:" in ran.out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--grpc", "0.0.0.0:7480"], "--grpc"),
        (["--storage", "mysql://u:hunter2@h/db"], "--storage"),
        (["--reaper-interval", "0"], "--reaper-interval"),
        (["--schema", "s"], "--schema"),
    ],
    ids=" ".join,
)
def test_a_server_that_is_told_nonsense_does_not_start(
    arguments: list[str], named: str, run: Run
) -> None:
    ran = run("server", *arguments)

    assert ran.code == 2
    assert ran.err.startswith(f"leaseq: {named}: ")
    assert "hunter2" not in ran.err


def test_an_unknown_variable_is_told_with_the_nearest_known_one(run: Run) -> None:
    ran = run("queues", "list", env={"LEASEQ_STROAGE": "memory://x", "LEASEQ_EMPTY": ""})

    assert ran.code == 0
    assert ran.err == (
        "leaseq: warning: nothing reads LEASEQ_STROAGE; did you mean LEASEQ_STORAGE?\n"
    )


def test_every_variable_that_help_names_is_known() -> None:
    texts = [
        f"{parameter.help} {parameter.variable}"
        for command in commands()
        for parameter in command.parameters
    ]

    named = set(re.findall(r"LEASEQ_[A-Z_]+", " ".join(texts)))

    assert {"LEASEQ_SERVER", "LEASEQ_STORAGE", "LEASEQ_POOLER"} <= named
    assert unknown_variables(dict.fromkeys(named, "x")) == []


def test_a_new_file_is_migrated_once(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"

    first = run("migrate", "--storage", url, "--json")
    second = run("migrate", "--storage", url)
    third = run("migrate", "--storage", url, "--json")

    assert first.document["created"] is True
    assert first.document["applied"][0].startswith("0001_")
    assert second.out == "nothing to do\n"
    assert third.document == {"storage": url, "created": False, "applied": []}


def test_a_file_that_was_not_there_is_said_to_be_created(run: Run, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/typo.db"

    told = run("migrate", "--storage", url).out.splitlines()

    assert told[0] == f"created {url}"
    assert told[1].startswith("applied 0001_")
