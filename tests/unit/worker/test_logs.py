"""Nothing of a payload, a result, an error's text or a lease token is ever logged."""

import logging
from typing import Any

import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.domain.task import Status
from leaseq.entrypoints.worker import PermanentFailure, TaskContext
from worker_rig import Rig, running

CANARY = "canary-7f3a"


async def test_logs_hold_ids_and_words_but_nothing_that_users_wrote(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    rig = Rig()
    worker = rig.worker()

    @worker.task("complete")
    async def complete(payload: dict[str, Any]) -> Any:
        return payload

    @worker.task("fail")
    def fail(payload: dict[str, Any]) -> None:
        raise ValueError(payload)

    @worker.task("give_up")
    async def give_up(payload: dict[str, Any], ctx: TaskContext) -> None:
        raise PermanentFailure(f"{payload} {ctx}")

    @worker.task("break")
    async def break_(payload: dict[str, Any]) -> Any:
        return {"result": object(), **payload}

    payload = f'{{"secret": "{CANARY}"}}'
    rig.queue.break_next("settle", OSError(CANARY), StorageUnavailableError("away"))
    rig.queue.break_next("lease", OSError(CANARY))

    async with running(worker):
        await rig.until(await rig.enqueue("complete", payload), Status.SUCCEEDED)
        await rig.until(await rig.enqueue("give_up", payload), Status.FAILED)
        await rig.until(await rig.enqueue("break", payload), Status.FAILED)
        failed = await rig.enqueue("fail", payload)
        await rig.queue.until(lambda: len(rig.queue.settlements) >= 6)
        await rig.until(failed, Status.QUEUED)

    said = {record.getMessage() for record in caplog.records}
    assert {"worker started", "task completed", "task failed", "worker stopped"} <= said
    everything = " ".join(str(record.__dict__) for record in caplog.records)
    assert CANARY not in everything
    assert "token-" not in everything


async def test_each_line_about_a_task_names_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rig = Rig()
    worker = rig.worker(queues=["mail"])
    worker.task("send")(lambda _: None)
    task_id = await rig.enqueue("send", queue="mail")

    async with running(worker):
        await rig.until(task_id, Status.SUCCEEDED)

    [record] = [r for r in caplog.records if r.getMessage() == "task completed"]
    assert record.__dict__["task_id"] == task_id
    assert record.__dict__["task_type"] == "send"
    assert record.__dict__["queue"] == "mail"
    assert record.__dict__["attempt"] == 1
    assert record.__dict__["worker_id"] == rig.queue.leases[0].worker_id
