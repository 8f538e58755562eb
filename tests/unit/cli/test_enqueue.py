from __future__ import annotations

from pathlib import Path

import pytest

from cli_runs import Run, status_of
from leaseq.domain.task import Status
from leaseq.entrypoints.connection import Connection


def test_enqueue_prints_the_task(run: Run) -> None:
    ran = run("enqueue", "--type", "hello", '{"name": "world"}')

    assert ran.code == 0
    assert 'payload     {"name": "world"}' in ran.out
    assert "status      queued" in ran.out
    assert "queue       default" in ran.out


def test_enqueue_prints_one_json_object(run: Run, connection: Connection) -> None:
    ran = run("enqueue", "--queue", "emails", "--type", "hello", "--json", '{"ä": 1.10}')

    assert ran.document["status"] == "queued"
    assert ran.document["created"] is True
    assert ran.document["payload"] == {"ä": 1.1}
    assert ran.out.isascii()
    assert "1.10" in ran.out
    assert status_of(connection, ran.document["id"]) is Status.QUEUED


def test_enqueue_says_everything_that_can_be_said_of_a_task(run: Run) -> None:
    ran = run(
        *("enqueue", "--json", "--type", "t", "--queue", "q", "--priority", "7", "--key", "k"),
        *("--delay", "1h", "--max-attempts", "3", "--retry-base", "1s", "--retry-cap", "5m"),
    )

    task = ran.document
    assert (task["queue"], task["priority"], task["idempotency_key"]) == ("q", 7, "k")
    assert task["max_attempts"] == 3
    assert task["run_after"] > task["created_at"]


def test_enqueue_takes_a_time_to_run_after(run: Run) -> None:
    ran = run("enqueue", "--json", "--type", "t", "--run-after", "2001-01-01T00:00:00+01:00")

    assert ran.code == 0
    assert ran.document["run_after"] == ran.document["created_at"]


@pytest.mark.parametrize("argument", ["-", "@payload.json"])
def test_enqueue_reads_the_payload_from_elsewhere(
    argument: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("payload.json").write_bytes(b'\xef\xbb\xbf{"a": "\xc3\xa4"}')

    ran = run("enqueue", "--json", "--type", "t", argument, text='{"a": "ä"}')

    assert ran.document["payload"] == {"a": "ä"}


@pytest.mark.parametrize("text", ["", " \n"], ids=["empty", "blank"])
@pytest.mark.parametrize("argument", ["-", "@payload.json"])
def test_enqueue_refuses_an_input_that_is_empty(
    argument: str, text: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("payload.json").write_text(text)

    ran = run("enqueue", "--type", "t", argument, text=text)

    assert ran.code == 2
    assert "PAYLOAD: the payload is empty; say {}" in ran.err
    assert run("tasks", "list", "--json").document["tasks"] == []


def test_enqueue_tells_that_the_key_was_taken(run: Run) -> None:
    first = run("enqueue", "--json", "--type", "t", "--key", "k").document

    again = run("enqueue", "--type", "t", "--key", "k")
    as_json = run("enqueue", "--json", "--type", "t", "--key", "k")

    assert again.code == 0
    assert first["id"] in again.out
    assert "taken already" in again.err
    assert as_json.document["created"] is False


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--type", "a b"], "--type: must be"),
        (["--type", "t", "[1]"], "PAYLOAD: must be a JSON object"),
        (["--type", "t", "{"], "PAYLOAD: is not JSON"),
        (["--type", "t", "--priority", "256"], "--priority: must be from 0 to 255"),
    ],
)
def test_what_the_queue_refuses_is_said_in_one_line(
    arguments: list[str], reason: str, run: Run
) -> None:
    ran = run("enqueue", *arguments)

    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("leaseq: ")
    assert reason in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "name",
    ['a"; DROP TABLE tasks;--', "a'b", "a\nERROR fake", "a\x1b[2Jb", "<img src=x>", "é", "x" * 101],
    ids=ascii,
)
@pytest.mark.parametrize(
    "command",
    [
        ["enqueue", "--type"],
        ["enqueue", "--type", "t", "--queue"],
        ["tasks", "list", "--queue"],
        ["dead", "list", "--type"],
        ["dead", "delete", "--all", "--queue"],
        ["queues", "pause"],
        ["tasks", "cancel"],
    ],
    ids=" ".join,
)
def test_what_is_no_name_is_refused_in_one_line(name: str, command: list[str], run: Run) -> None:
    ran = run(*command, name)

    assert ran.code == 2
    assert ran.err.count("\n") == 1
    assert ran.err[:-1].isprintable()


def test_a_reused_key_is_refused(run: Run) -> None:
    run("enqueue", "--type", "t", "--key", "k", "{}")

    ran = run("enqueue", "--type", "t", "--key", "k", '{"other": 1}')

    assert ran.code == 1
    assert "belongs to task" in ran.err


def test_a_payload_that_is_no_text_is_misuse(run: Run) -> None:
    ran = run("enqueue", "--type", "t", "-", text=b"\xff\xfe")

    assert ran.code == 2
    assert "PAYLOAD" in ran.err
    assert "UTF-8" in ran.err
