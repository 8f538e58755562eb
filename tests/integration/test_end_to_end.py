"""The whole of it as processes: servers, workers, the command; on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest

import leaseq
from leaseq.domain.requests import Complete, Fail, LeaseRef, LeaseRequest, NewTask
from leaseq.domain.task import TaskError
from leaseq.domain.views import Enqueued, LeasedTask
from leaseq.entrypoints.connection import Connection, open_blocking, run_blocking
from leaseq_process import SOON, ServerProcess, clean_environment, leaseq_server, run_leaseq

QUICK = timedelta(milliseconds=50)
ROOT = Path(__file__).parents[2]

HANDLERS = """
import os, time
from pathlib import Path

import leaseq

worker = leaseq.Worker(os.environ["TEST_SERVER"], queues=["work"], concurrency=4, lease_duration=1)


@worker.task("third_time")
def third_time(payload: dict, ctx: leaseq.TaskContext) -> dict:
    if ctx.attempt < 3:
        raise ConnectionError("not yet")
    return {"attempt": ctx.attempt}


@worker.task("never")
async def never(payload: dict) -> None:
    raise ValueError("never works")


@worker.task("hang")
def hang(payload: dict, ctx: leaseq.TaskContext) -> str:
    Path(f"started-{ctx.attempt}").touch()
    while Path("hang").exists():
        time.sleep(0.01)
    return f"attempt {ctx.attempt}"
"""


@pytest.fixture(params=["sqlite", "postgresql", "pgbouncer"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty storage."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'tasks.db'}"
    pooler = "none" if request.param == "postgresql" else "transaction"
    url: str = request.getfixturevalue("postgres_url" if pooler == "none" else "pgbouncer_url")
    schema: str = request.getfixturevalue("postgres_schema")
    return f"{url}{'&' if '?' in url else '?'}schema={quote(schema)}&pooler={pooler}"


@pytest.fixture
def serve(storage: str, tmp_path: Path) -> Iterator[Callable[[], ServerProcess]]:
    """Start servers on the storage, as many as a test calls for; each returns when it is up."""
    with ExitStack() as stack:

        def start() -> ServerProcess:
            server = stack.enter_context(
                leaseq_server("--storage", storage, "--reaper-interval", "200ms", cwd=tmp_path)
            )
            assert server.start_line, server.log
            return server

        yield start


@attrs.frozen
class Door:
    """A blocking connection to a server, spoken to in single calls."""

    connection: Connection

    def enqueue(self, tasks: Sequence[NewTask]) -> list[str]:
        answers = run_blocking(self.connection.queue.enqueue(tasks))
        return [answer.task.id for answer in answers if isinstance(answer, Enqueued)]

    def lease(
        self, worker_id: str, *, count: int = 1, seconds: float = 30, wait: float = 0
    ) -> list[LeasedTask]:
        request = LeaseRequest(
            worker_id=worker_id,
            queues=("work",),
            max_tasks=count,
            lease_duration=timedelta(seconds=seconds),
            wait=timedelta(seconds=wait),
        )
        return run_blocking(self.connection.queue.lease(request))

    def complete(self, leased: LeasedTask) -> leaseq.TaskQueueError | None:
        [answer] = run_blocking(self.connection.queue.settle([Complete(ref=_ref(leased))]))
        return answer

    def fail(self, leased: LeasedTask) -> leaseq.TaskQueueError | None:
        error = TaskError(type="Boom", message="late")
        [answer] = run_blocking(self.connection.queue.settle([Fail(ref=_ref(leased), error=error)]))
        return answer


def _ref(leased: LeasedTask) -> LeaseRef:
    return LeaseRef(task_id=leased.task.id, lease_token=leased.lease_token)


@contextmanager
def door(server: ServerProcess) -> Iterator[Door]:
    with open_blocking(server.url) as connection:
        yield Door(connection)


@contextmanager
def worker_process(server: ServerProcess, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    (folder / "handlers.py").write_text(HANDLERS)
    log = (folder / "worker.log").open("ab")
    process = subprocess.Popen(
        [sys.executable, "-m", "leaseq", "worker", "handlers:worker"],
        cwd=folder,
        env=clean_environment(TEST_SERVER=server.url),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait(SOON)
        log.close()


def until(done: Callable[[], bool]) -> None:
    """Look again and again, since what is waited for happens in other processes."""
    give_up_at = time.monotonic() + SOON
    while not done():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def test_eight_servers_start_at_once_on_an_empty_storage(
    serve: Callable[[], ServerProcess],
) -> None:
    with ThreadPoolExecutor(8) as pool:
        servers = list(pool.map(lambda _: serve(), range(8)))

    assert all("serves gRPC on" in server.start_line for server in servers)
    assert not any("error" in server.log for server in servers)


def test_one_key_through_two_servers_makes_one_task(serve: Callable[[], ServerProcess]) -> None:
    servers = [serve(), serve()]
    task = NewTask(type="t", queue="work", payload='{"a": 1}', idempotency_key="once")

    def enqueue(number: int) -> str:
        with leaseq.connect(servers[number % 2].url) as client:
            [answer] = client.enqueue_many([task])
            assert isinstance(answer, Enqueued)
            return answer.task.id

    with ThreadPoolExecutor(64) as pool:
        ids = set(pool.map(enqueue, range(64)))

    with leaseq.connect(servers[0].url) as client:
        stored = [view.id for view in client.list_tasks(queue="work").tasks]
    assert [*ids] == stored


@pytest.mark.parametrize("workers", [10, 20])
def test_concurrent_workers_over_two_servers_share_no_task_and_leave_none(
    serve: Callable[[], ServerProcess], workers: int
) -> None:
    servers = [serve(), serve()]
    with door(servers[0]) as first:
        for _ in range(4):
            first.enqueue([NewTask(type="t", queue="work")] * 500)

    def work(number: int) -> list[str]:
        done: list[str] = []
        with door(servers[number % 2]) as mine:
            while leased := mine.lease(f"w{number}", count=7):
                for task in leased:
                    assert mine.complete(task) is None
                done += [task.task.id for task in leased]
        return done

    with ThreadPoolExecutor(workers) as pool:
        done = [task_id for ids in pool.map(work, range(workers)) for task_id in ids]

    assert len(done) == len(set(done)) == 2000
    with leaseq.connect(servers[0].url) as client:
        [queue] = client.list_queues()
    assert {status.value: depth.count for status, depth in queue.depths.items()} == {
        "succeeded": 2000
    }


def test_a_worker_retries_gives_up_and_the_command_shows_and_requeues(
    serve: Callable[[], ServerProcess], tmp_path: Path
) -> None:
    server = serve()
    with leaseq.connect(server.url) as client:
        flaky = client.enqueue("third_time", queue="work", retry_base=QUICK, retry_cap=QUICK)
        hopeless = client.enqueue(
            "never", queue="work", max_attempts=2, retry_base=QUICK, retry_cap=QUICK
        )
        with worker_process(server, tmp_path):
            until(lambda: client.get(flaky.task.id).status == "succeeded")
            until(lambda: client.get(hopeless.task.id).status == "dead")
        done = client.get(flaky.task.id)

    def command(*arguments: str) -> subprocess.CompletedProcess[str]:
        return run_leaseq(*arguments, "--server", server.address, cwd=tmp_path)

    listed = command("dead", "list", "--json")
    shown = command("dead", "show", hopeless.task.id)
    requeued = command("dead", "requeue", hopeless.task.id)
    task = json.loads(command("tasks", "show", "--json", hopeless.task.id).stdout)

    assert (done.attempts, done.result) == (3, '{"attempt": 3}')
    assert [error.attempt for error in done.errors] == [1, 2]
    assert hopeless.task.id in listed.stdout
    assert "ValueError: never works" in shown.stdout
    assert requeued.returncode == 0
    assert (task["status"], task["attempts"]) == ("queued", 0)


def test_a_killed_worker_is_replaced_in_time(
    serve: Callable[[], ServerProcess], tmp_path: Path
) -> None:
    server = serve()
    (tmp_path / "hang").touch()
    with leaseq.connect(server.url) as client, worker_process(server, tmp_path) as victim:
        task = client.enqueue("hang", queue="work", retry_base=QUICK, retry_cap=QUICK).task
        until((tmp_path / "started-1").exists)
        with worker_process(server, tmp_path):
            until(lambda: (tmp_path / "worker.log").read_text().count("worker started") == 2)
            victim.send_signal(signal.SIGKILL)
            (tmp_path / "hang").unlink()
            killed_at = time.monotonic()
            until(lambda: client.get(task.id).status == "succeeded")
        # The lease, the reaper's interval, the backoff, and a second on a machine that is idle.
        assert time.monotonic() - killed_at < 1 + 0.2 + 0.075 + 1 + _start_of_a_process()
        done = client.get(task.id)

    assert (done.attempts, done.result) == (2, '"attempt 2"')
    assert done.errors[0].type == "LeaseExpired"


def _start_of_a_process() -> float:
    began = time.monotonic()
    subprocess.run([sys.executable, "-m", "leaseq", "--help"], check=True, capture_output=True)
    return 3 * (time.monotonic() - began)


def test_a_worker_that_lost_its_lease_is_refused_with_a_reason(
    serve: Callable[[], ServerProcess],
) -> None:
    server, other_server = serve(), serve()
    with door(server) as late, door(other_server) as other:
        [task_id] = late.enqueue(
            [NewTask(type="t", queue="work", retry_base=QUICK, retry_cap=QUICK)]
        )
        [lost] = late.lease("late", seconds=1)
        [taken] = other.lease("other", wait=10)

        refusals = [late.complete(lost), late.fail(lost)]
        accepted = other.complete(taken)

        done = run_blocking(late.connection.queue.get(task_id))
    assert [type(refusal) for refusal in refusals] == [leaseq.LeaseLostError] * 2
    assert all(
        refusal.reason == "LEASE_SUPERSEDED"
        for refusal in refusals
        if isinstance(refusal, leaseq.LeaseLostError)
    )
    assert (taken.attempt, taken.lease_number) == (2, 2)
    assert accepted is None
    assert (done.status, done.attempts) == ("succeeded", 2)


def test_the_example_of_the_readme_runs_as_printed(
    serve: Callable[[], ServerProcess], tmp_path: Path
) -> None:
    server = serve()
    found = re.search(
        r"<!-- example: greet\.py -->\n```python\n(.*?)```",
        (ROOT / "README.md").read_text(),
        re.DOTALL,
    )
    assert found
    example = found[1].replace("127.0.0.1:7480", server.address)
    (tmp_path / "greet.py").write_text(example)
    process = subprocess.Popen([sys.executable, "greet.py"], cwd=tmp_path, env=clean_environment())

    try:
        with leaseq.connect(server.url) as client:

            def results() -> list[str | None]:
                page = client.list_tasks(queue="mail", with_payload=True, statuses=["succeeded"])
                return [task.result for task in page.tasks]

            until(lambda: results() == ['"Hello, Ada!"'])
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) == 0
    finally:
        process.kill()
        process.wait(SOON)


def test_the_demo_plays_to_its_end(tmp_path: Path) -> None:
    played = run_leaseq("demo", cwd=tmp_path)

    assert played.returncode == 0, played.stdout + played.stderr
    assert re.search(r"380 +succeeded", played.stdout)
    assert re.search(r"20 +dead", played.stdout)
    assert "hopeless" in played.stdout
    assert "server --storage sqlite:///leaseq-demo.db" in played.stdout
