"""Commands of the CLI run in the test's process, on tasks in its memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs
from typer.testing import CliRunner

from leaseq.domain.requests import Complete, Fail, LeaseRef, LeaseRequest, NewTask
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


def run_command(
    *arguments: str,
    text: str | bytes | None = None,
    env: Mapping[str, str] | None = None,
) -> Ran:
    variables = {"LEASEQ_SERVER": SERVER} | dict(env or {})
    result = CliRunner(env=variables).invoke(app, arguments, input=text)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def enqueue(
    connection: Connection,
    count: int = 1,
    *,
    queue: str = "default",
    max_attempts: int | None = None,
) -> list[str]:
    new = [NewTask(type="t", queue=queue, max_attempts=max_attempts) for _ in range(count)]
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


def one_of_each(connection: Connection, *, queue: str) -> dict[Status, str]:
    """Put a task of each status into an empty queue, and return their ids."""
    [succeeded, leased, failed, dead] = enqueue(connection, 3, queue=queue) + enqueue(
        connection, queue=queue, max_attempts=1
    )
    refs: dict[str, LeaseRef] = {
        each.task.id: each.ref for each in lease(connection, 4, queue=queue)
    }
    error = TaskError(type="ValueError", message="boom")
    run_blocking(
        connection.queue.settle(
            [
                Complete(ref=refs[succeeded]),
                Fail(ref=refs[failed], error=error, retry=False),
                Fail(ref=refs[dead], error=error),
            ]
        )
    )
    [cancelled, queued] = enqueue(connection, 2, queue=queue)
    run_blocking(connection.admin.cancel([cancelled]))
    return {
        Status.QUEUED: queued,
        Status.LEASED: leased,
        Status.SUCCEEDED: succeeded,
        Status.FAILED: failed,
        Status.DEAD: dead,
        Status.CANCELLED: cancelled,
    }


def status_of(connection: Connection, task_id: str) -> Status:
    return run_blocking(connection.queue.get(task_id)).status
