"""What `worker.run()` tells in a program that configured no logging."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

import leaseq

URL = "memory://run-logs"


@pytest.fixture
def client() -> Iterator[leaseq.Client]:
    with leaseq.connect(URL) as client:
        yield client


def stopping_worker() -> leaseq.Worker:
    """Return a worker that fails one task, and then stops."""
    worker = leaseq.Worker(URL)

    @worker.task("fail")
    def fail(payload: dict[str, Any]) -> None:
        worker.stop()
        raise ValueError(payload)

    return worker


def run_with(root_handlers: list[logging.Handler], worker: leaseq.Worker) -> None:
    # Within the test, since pytest gives the root logger handlers of its own around it.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger(), "handlers", root_handlers)
        worker.run()


def test_run_tells_what_it_does_where_no_logging_is_configured(
    client: leaseq.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    task = client.enqueue("fail", {"secret": "canary"}).task

    run_with([], stopping_worker())

    err = capsys.readouterr().err
    [failed] = [line for line in map(json.loads, err.splitlines()) if "task_id" in line]
    told = {name: failed[name] for name in ("event", "level", "task_type", "attempt", "error")}
    assert failed["task_id"] == task.id
    assert told == {
        "event": "task failed",
        "level": "warning",
        "task_type": "fail",
        "attempt": 1,
        "error": "ValueError",
    }
    assert "canary" not in err


def test_run_leaves_logging_as_it_was(client: leaseq.Client) -> None:
    client.enqueue("fail")

    run_with([], stopping_worker())

    ours = logging.getLogger("leaseq")
    assert (ours.handlers, ours.level) == ([], logging.NOTSET)


def test_run_adds_nothing_where_logging_is_configured(
    client: leaseq.Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.enqueue("fail")

    run_with([logging.NullHandler()], stopping_worker())

    assert capsys.readouterr().err == ""
