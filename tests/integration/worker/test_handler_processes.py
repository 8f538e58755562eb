"""Handlers in processes of their own: what they may do, and what it costs."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import pytest

from leaseq.domain.task import Status
from worker_processes import PROCESSES, SOON, Site, a_site, a_worker
from worker_program import gone


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with a_site() as site:
        yield site


async def until_gone(pids: Iterable[int]) -> None:
    async with asyncio.timeout(SOON):
        while not all(gone(pid) for pid in pids):  # noqa: ASYNC110  the system tells nobody
            await asyncio.sleep(0.02)


async def test_handlers_that_crash_exit_or_never_end_cost_their_attempts_and_nothing_else(
    site: Site,
) -> None:
    async with a_worker(site.url, lease=5.0, program=PROCESSES) as worker:
        others = [await site.enqueue("nap", {"seconds": 1}, max_attempts=1) for _ in range(3)]
        culprits = {
            type_: await site.enqueue(type_, max_attempts=2)
            for type_ in ("leave", "crash", "never_end")
        }
        others += [await site.enqueue("nap", {"seconds": 1}, max_attempts=1) for _ in range(3)]
        for task_id in culprits.values():
            await site.until(task_id, Status.DEAD)
        for task_id in others:
            await site.until(task_id, Status.SUCCEEDED)
        await until_gone(worker.pids_of(culprits["never_end"]))

        assert worker.events["worker started"] == 1

    why = {
        type_: [error.message for error in (await site.get(task_id)).errors]
        for type_, task_id in culprits.items()
    }
    assert why == {
        "leave": ["the process of the handler exited with code 3"] * 2,
        "crash": ["the process of the handler was killed by SIGSEGV"] * 2,
        "never_end": ["the handler took longer than its timeout of 1.5 s"] * 2,
    }
    ended = await site.get(culprits["never_end"])
    assert [error.type for error in ended.errors] == ["HandlerTimeout"] * 2


async def test_a_process_is_used_again(site: Site) -> None:
    async with a_worker(site.url, concurrency=1, lease=5.0, program=PROCESSES):
        pids = set()
        for _ in range(5):
            done = await site.until(await site.enqueue("nap"), Status.SUCCEEDED)
            pids.add(done.result)

    assert len(pids) == 1


async def test_a_process_that_is_killed_like_one_out_of_memory_costs_one_attempt(
    site: Site,
) -> None:
    async with a_worker(site.url, lease=5.0, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap_once", {"seconds": 60})
        await worker.until_it_says("began", task_id)
        [pid] = worker.pids_of(task_id)
        os.kill(pid, signal.SIGKILL)
        done = await site.until(task_id, Status.SUCCEEDED)

    assert done.attempts == 2
    assert done.errors[0].type == "HandlerProcessDied"
    assert done.errors[0].message == "the process of the handler was killed by SIGKILL"


async def test_processes_die_with_a_worker_that_is_killed(site: Site) -> None:
    async with a_worker(site.url, lease=5.0, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60})
        await worker.until_it_says("began", task_id)
        children = children_of(worker.pid)
        worker.send(signal.SIGKILL)
        await worker.ended()
        await until_gone(children)

    assert set(worker.pids_of(task_id)) < set(children)


def children_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    tasks = children.parent.parent.iterdir()
    return [int(each) for task in tasks for each in (task / "children").read_text().split()]


async def test_an_interrupt_from_the_keyboard_lets_processes_finish(site: Site) -> None:
    async with a_worker(site.url, lease=5.0, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap", {"seconds": 1.5}, max_attempts=1)
        await worker.until_it_says("began", task_id)
        worker.send_to_group(signal.SIGINT)

        assert await worker.ended() == 0

    done = await site.get(task_id)
    assert done.status is Status.SUCCEEDED
    assert worker.events["heartbeat process failed; another is started"] == 0


async def test_a_process_that_runs_on_after_the_grace_is_killed_and_its_task_given_back(
    site: Site,
) -> None:
    async with a_worker(site.url, lease=5.0, grace=0.1, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60})
        await worker.until_it_says("began", task_id)
        worker.send(signal.SIGTERM)

        assert await worker.ended() == 0

    task = await site.get(task_id)
    assert (task.status, task.attempts) == (Status.QUEUED, 0)
    await until_gone(worker.pids_of(task_id))


async def test_a_process_hears_that_its_task_was_called_off(site: Site) -> None:
    async with a_worker(site.url, lease=1.0, program=PROCESSES) as worker:
        task_id = await site.enqueue("wait_until_told")
        await worker.until_it_says("began", task_id)
        await site.admin.cancel([task_id])
        await site.until(task_id, Status.CANCELLED)

        assert worker.said("told-cancel_requested") == [task_id]


async def test_a_process_whose_lease_is_lost_is_killed(site: Site) -> None:
    async with a_worker(site.url, lease=1.0, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap", {"seconds": 60})
        await worker.until_it_says("began", task_id)
        worker.send(signal.SIGSTOP)
        await asyncio.sleep(2)
        worker.send(signal.SIGCONT)
        await until_gone(worker.pids_of(task_id)[:1])


async def test_payloads_and_results_of_any_size_go_through_the_pipe(site: Site) -> None:
    payload = {"text": "é" * 150_000}
    async with a_worker(site.url, lease=5.0, program=PROCESSES):
        done = await site.until(await site.enqueue("large", payload), Status.SUCCEEDED)

    assert done.result is not None
    assert json.loads(done.result) == payload


async def test_a_thread_keeps_its_task_beyond_its_timeout_and_has_then_failed(site: Site) -> None:
    async with a_worker(site.url, lease=1.0, concurrency=1, program=PROCESSES) as worker:
        task_id = await site.enqueue("nap_in_thread", {"seconds": 3}, max_attempts=1)
        await worker.until_it_says("began", task_id)
        await worker.until(lambda: worker.events["handler told to stop"] == 1)
        other = await site.enqueue("nap")
        assert (await site.get(task_id)).status is Status.LEASED
        done = await site.until(task_id, Status.DEAD)
        await site.until(other, Status.SUCCEEDED)

    assert done.errors[0].type == "HandlerTimeout"


HEAD = """
import leaseq
worker = leaseq.Worker("memory://")
"""
LAMBDA = """
worker.task("work", executor="process")(lambda payload: None)
if __name__ == "__main__":
    worker.run()
"""
UNGUARDED = """
@worker.task("work", executor="process")
def work(payload): ...
worker.run()
"""
BROKEN = """
@worker.task("work", executor="process")
def work(payload): ...
if __name__ == "__main__":
    worker.run()
else:
    raise OSError("no such device")
"""


@pytest.mark.parametrize(
    ("program", "says"),
    [
        (LAMBDA, "the handler of work cannot be found from another process"),
        (UNGUARDED, 'call run() under `if __name__ == "__main__":` only'),
        (BROKEN, "no such device"),
    ],
    ids=["a lambda", "an unguarded main program", "a module that cannot be imported"],
)
def test_a_handler_that_no_process_could_load_stops_the_start(
    tmp_path: Path, program: str, says: str
) -> None:
    (tmp_path / "program.py").write_text(HEAD + program)

    ended = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )

    assert ended.returncode == 1
    assert "LoadError" in ended.stderr
    assert says in ended.stderr


def test_a_handler_of_a_program_without_a_file_stops_the_start() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", HEAD + UNGUARDED],
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )

    assert ended.returncode == 1
    assert "the handler of work cannot be loaded in a process: AttributeError" in ended.stderr
