"""Commands of the CLI run in the test's process, on tasks in its memory."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
from typer.testing import CliRunner

from leaseq.domain.requests import Fail, LeaseRequest, NewTask
from leaseq.domain.task import Status, TaskError
from leaseq.domain.views import Enqueued, LeasedTask
from leaseq.entrypoints.cli.main import app
from leaseq.entrypoints.connection import Connection, run_blocking

SERVER = "memory://cli-tests"


@attrs.frozen
class Ran:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


Run = Callable[..., Ran]


def run_command(*arguments: str, text: str | bytes | None = None) -> Ran:
    result = CliRunner(env={"LEASEQ_SERVER": SERVER}).invoke(app, arguments, input=text)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def enqueue(connection: Connection, count: int = 1, *, queue: str = "default") -> list[str]:
    new = [NewTask(type="t", queue=queue) for _ in range(count)]
    return [
        outcome.task.id
        for outcome in run_blocking(connection.queue.enqueue(new))
        if isinstance(outcome, Enqueued)
    ]


def lease(connection: Connection, count: int = 1, *, queue: str = "default") -> list[LeasedTask]:
    request = LeaseRequest(worker_id="w", queues=(queue,), max_tasks=count)
    return run_blocking(connection.queue.lease(request))


def give_up(
    connection: Connection, count: int = 1, *, queue: str = "default", message: str = "boom"
) -> list[str]:
    enqueue(connection, count, queue=queue)
    leased = lease(connection, count, queue=queue)
    error = TaskError(type="ValueError", message=message, traceback="Traceback ...\n  line")
    run_blocking(
        connection.queue.settle([Fail(ref=each.ref, error=error, retry=False) for each in leased])
    )
    return [each.task.id for each in leased]


def status_of(connection: Connection, task_id: str) -> Status:
    return run_blocking(connection.queue.get(task_id)).status
