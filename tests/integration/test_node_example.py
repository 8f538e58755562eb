"""Runs examples/node as its page prints it, and its worker beside one in Python."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

import leaseq
from leaseq.domain.views import TaskView
from leaseq_process import ServerProcess, clean_environment, leaseq_server
from node_programs import install_packages

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "node"
BLOCK = re.compile(r"<!-- (\w+) -->\n```console\n(.*?)```", re.DOTALL)
ADDRESS = "127.0.0.1:7480"
LATE = 60.0
"""Seconds after which a test that waits has failed; Node.js starts slowly on a busy machine."""

PYTHON_WORKER = """
import os, sys, time
import leaseq

worker = leaseq.Worker(sys.argv[1], queues=["q"], concurrency=4)


@worker.task("nap")
def nap(payload: dict) -> int:
    time.sleep(min(payload["seconds"], 0.2))
    return os.getpid()


worker.run()
"""

pytestmark = pytest.mark.timeout(180)


@attrs.define
class Program:
    """A worker as a process, with what it logs."""

    process: subprocess.Popen[bytes]
    log: Path

    def events(self) -> list[dict[str, str]]:
        """Return the whole lines that it logged."""
        lines = self.log.read_text(encoding="utf-8").split("\n")[:-1]
        return [json.loads(line) for line in lines]

    def until_it_logs(self, event: str, **fields: str) -> None:
        wanted = {"event": event} | fields
        until(lambda: any(wanted.items() <= each.items() for each in self.events()))

    def reasons(self, task_id: str) -> set[str]:
        """Return why the handler of a task was told to stop."""
        told = [each for each in self.events() if each["event"] == "task interrupted"]
        return {each["why"] for each in told if each["task_id"] == task_id}

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(LATE)


@attrs.define
class Site:
    """A server, a client of it, and the example with its packages installed."""

    folder: Path
    server: ServerProcess
    client: leaseq.Client

    def enqueue(self, seconds: float = 0) -> str:
        """Store a nap that is due again at once when it fails, and return its id."""
        return self.client.enqueue(
            "nap", {"seconds": seconds}, queue="q", retry_base=0.001, retry_cap=0.001
        ).task.id

    def get(self, task_id: str) -> TaskView:
        return self.client.get(task_id)

    def until_succeeded(self, task_id: str) -> TaskView:
        until(lambda: self.get(task_id).status == "succeeded")
        return self.get(task_id)

    def run(self, command: str) -> str:
        """Run a command of the page to its end, and return what it printed."""
        return subprocess.run(
            ["sh", "-euc", command],
            cwd=self.folder / "examples" / "node",
            env=clean_environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=LATE,
        ).stdout

    @contextmanager
    def node(self, *arguments: str) -> Iterator[Program]:
        command = ["node", "worker.js", "--server", self.server.address, "--queue", "q"]
        with self.program([*command, *arguments]) as program:
            yield program

    @contextmanager
    def python(self) -> Iterator[Program]:
        with self.program([sys.executable, "-c", PYTHON_WORKER, self.server.url]) as program:
            yield program

    @contextmanager
    def program(self, command: list[str]) -> Iterator[Program]:
        folder = self.folder / "examples" / "node"
        log = self.folder / f"{time.monotonic_ns()}.log"
        with (
            log.open("wb") as stderr,
            subprocess.Popen(
                command, cwd=folder, env=clean_environment(), stdout=stderr, stderr=stderr
            ) as process,
        ):
            try:
                yield Program(process, log)
            finally:
                process.kill()


def until(done: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + LATE
    while not done():
        assert time.monotonic() < give_up_at
        time.sleep(0.05)


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall((EXAMPLE / "README.md").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example and the proto files as in a checkout."""
    folder = tmp_path_factory.mktemp("checkout")
    (folder / "proto").symlink_to(ROOT / "proto")
    copied = folder / "examples" / "node"
    shutil.copytree(EXAMPLE, copied, ignore=shutil.ignore_patterns("node_modules"))
    install_packages(copied, dict(blocks())["npm"])
    return folder


@pytest.fixture
def site(example: Path, tmp_path: Path) -> Iterator[Site]:
    storage = f"sqlite:///{tmp_path / 'tasks.db'}"
    with (
        leaseq_server("--storage", storage, "--reaper-interval", "0.2", cwd=tmp_path) as server,
        leaseq.connect(server.url) as client,
    ):
        yield Site(example, server, client)


def test_the_page_does_as_it_says(site: Site) -> None:
    texts = dict(blocks())
    where = ["--server", site.server.address]

    with site.program([*texts["background"].split(), *where]) as worker:
        printed = [site.run(f"{line} {' '.join(where)}") for line in texts["run"].splitlines()]
        tasks = [site.until_succeeded(line.split()[0]) for line in printed]
        code = worker.stop()

    said = [line.split(maxsplit=1)[1].strip() for line in printed]
    assert said == ["is new", "was there already", "is new"]
    assert [task.result for task in tasks[:2]] == ['"Hello, Ada!"'] * 2
    assert code == 0


def test_workers_in_two_languages_share_a_queue(site: Site) -> None:
    with site.node("--concurrency", "4") as node:
        site.until_succeeded(site.enqueue())
        with site.python() as python:
            until(lambda: python.log.stat().st_size > 0)
            ids = [site.enqueue(0.2) for _ in range(200)]

            tasks = [site.until_succeeded(task_id) for task_id in ids]

    took = Counter(int(task.result or 0) for task in tasks)
    began = Counter(each["task_id"] for each in node.events() if each["event"] == "napping")
    assert took.keys() == {node.process.pid, python.process.pid}
    assert all(task.attempts == 1 for task in tasks)
    assert sum(began[task_id] for task_id in ids) == took[node.process.pid]


def test_what_a_killed_worker_held_is_done_by_another(site: Site) -> None:
    with site.node("--lease", "2") as node:
        ids = [site.enqueue(60) for _ in range(3)]
        for task_id in ids:
            node.until_it_logs("napping", task_id=task_id)
        node.stop(signal.SIGKILL)

    with site.python() as python:
        tasks = [site.until_succeeded(task_id) for task_id in ids]

    assert {task.result for task in tasks} == {str(python.process.pid)}
    assert {task.attempts for task in tasks} == {2}


def test_a_lease_is_renewed_while_its_handler_runs(site: Site) -> None:
    with site.node("--lease", "3") as node:
        task = site.until_succeeded(site.enqueue(7))

    assert task.attempts == 1
    assert "lease lost" not in {each["event"] for each in node.events()}


@pytest.mark.parametrize(
    ("grace", "signals"), [("0.5", 1), ("100", 2)], ids=["grace is over", "second signal"]
)
def test_a_worker_that_stops_gives_back_what_it_cannot_finish(
    site: Site, grace: str, signals: int
) -> None:
    with site.node("--grace", grace) as node:
        task_id = site.enqueue(200)
        node.until_it_logs("napping", task_id=task_id)
        for _ in range(signals - 1):
            node.process.send_signal(signal.SIGTERM)
            # Signals that come together are one.
            time.sleep(0.5)

        code = node.stop()

    assert code == 0
    assert (site.get(task_id).status, site.get(task_id).attempts) == ("queued", 0)


def test_a_worker_that_stops_finishes_what_it_can(site: Site) -> None:
    with site.node() as node:
        task_id = site.enqueue(1)
        node.until_it_logs("napping", task_id=task_id)

        code = node.stop()

    assert code == 0
    assert site.get(task_id).status == "succeeded"


def test_an_idle_worker_ends_its_long_poll_and_strands_nothing(site: Site) -> None:
    with site.node() as node:
        site.until_succeeded(site.enqueue())
        began = time.monotonic()

        code = node.stop(signal.SIGINT)

    # Its poll would have waited for 20 seconds.
    assert time.monotonic() - began < 15
    assert code == 0


def test_a_handler_whose_lease_is_lost_is_aborted(site: Site) -> None:
    with site.node("--lease", "2", "--concurrency", "1") as node:
        task_id = site.enqueue(200)
        node.until_it_logs("napping", task_id=task_id)
        node.process.send_signal(signal.SIGSTOP)
        with site.python() as python:
            done = site.until_succeeded(task_id)
            node.process.send_signal(signal.SIGCONT)

            until(lambda: node.reasons(task_id) != set())

    assert node.reasons(task_id) <= {"LEASE_EXPIRED", "TASK_FINISHED"}
    assert done.result == str(python.process.pid)
    assert site.get(task_id) == done


def test_a_handler_whose_task_is_called_off_is_aborted(site: Site) -> None:
    with site.node("--lease", "3") as node:
        task_id = site.enqueue(200)
        node.until_it_logs("napping", task_id=task_id)

        site.client.cancel(task_id)

        node.until_it_logs("task interrupted", task_id=task_id, why="CANCEL_REQUESTED")
        until(lambda: site.get(task_id).status == "cancelled")


def test_an_error_in_javascript_is_kept_with_its_stack(site: Site) -> None:
    with site.node():
        task_id = site.client.enqueue("greet", {}, queue="q").task.id
        until(lambda: site.get(task_id).status == "failed")

    [error] = site.get(task_id).errors
    assert (error.type, error.message) == ("PermanentFailure", "nobody to greet")
    assert "worker.js" in error.traceback


def test_a_worker_and_a_producer_outlive_their_server(site: Site, tmp_path: Path) -> None:
    address = site.server.address
    storage = f"sqlite:///{tmp_path / 'tasks.db'}"
    with site.node("--lease", "30") as node:
        running = site.enqueue(1)
        node.until_it_logs("napping", task_id=running)
        site.server.stop(signal.SIGKILL)
        node.until_it_logs("outcomes could not be reported")

        with leaseq_server("--storage", storage, "--grpc", address, cwd=tmp_path) as again:
            assert again.address == address
            printed = site.run(
                f"node enqueue.js --server {address} --queue q nap '{{\"seconds\": 0}}'"
            )
            tasks = [site.until_succeeded(each) for each in (running, printed.split()[0])]

    assert [task.attempts for task in tasks] == [1, 1]
