from __future__ import annotations

import json
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

import leaseq
from leaseq.domain.requests import LeaseRequest
from leaseq.domain.views import LeasedTask
from leaseq.entrypoints.connection import Connection, open_blocking, run_blocking
from leaseq_process import SOON, ServerProcess, clean_environment, leaseq_server, run_leaseq


@contextmanager
def locked(database: Path) -> Iterator[None]:
    """Keep everybody else from writing to an SQLite file."""
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
        connection.execute("ROLLBACK")


class Enqueuing(threading.Thread):
    """An enqueue that waits for its answer in the background."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url
        self.connected = threading.Event()
        self.task_id: str | None = None
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with leaseq.connect(self._url) as client:
                client.list_queues()
                self.connected.set()
                self.task_id = client.enqueue("t").task.id
        except leaseq.TaskQueueError as error:
            self.error = error


def begun(server: ServerProcess) -> Enqueuing:
    """Return an enqueue that has reached the server, as far as can be known from outside."""
    enqueuing = Enqueuing(server.url)
    enqueuing.start()
    assert enqueuing.connected.wait(SOON)
    enqueuing.join(0.5)
    return enqueuing


def test_without_settings_a_server_serves_a_private_file_of_its_folder(tmp_path: Path) -> None:
    with leaseq_server(cwd=tmp_path) as server:
        line = server.start_line

        assert f"gRPC on {server.address}" in line
        assert "sqlite:///leaseq.db" in line
        assert f"leaseq enqueue --server {server.address}" in line
        assert stat.S_IMODE((tmp_path / "leaseq.db").stat().st_mode) == 0o600


def test_two_clients_and_the_cli_see_the_same_tasks(tmp_path: Path) -> None:
    with leaseq_server(cwd=tmp_path) as server, leaseq.connect(server.url) as client:
        done = run_leaseq(
            *("enqueue", "--queue", "q", "--type", "t", "--json", '{"a": 1}'),
            cwd=tmp_path,
            env={"LEASEQ_SERVER": server.address},
        )
        task_id = json.loads(done.stdout)["id"]
        with leaseq.connect(server.url) as other:
            other.cancel(task_id)

        task = client.get(task_id)

    assert done.returncode == 0
    assert (task.queue, task.status, task.payload) == ("q", leaseq.Status.CANCELLED, '{"a": 1}')


def test_expired_leases_are_reaped_as_often_as_asked(tmp_path: Path) -> None:
    with (
        leaseq_server("--reaper-interval", "100ms", cwd=tmp_path) as server,
        open_blocking(server.url) as connection,
        leaseq.connect(server.url) as client,
    ):
        task_id = client.enqueue("t", retry_base=0.001, retry_cap=0.001).task.id
        second = timedelta(seconds=1)
        run_blocking(connection.queue.lease(LeaseRequest(worker_id="w", lease_duration=second)))

        request = LeaseRequest(worker_id="w", wait=20 * second)
        [again] = run_blocking(connection.queue.lease(request))

    assert again.task.id == task_id
    assert again.attempt == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_ends_a_server_cleanly(number: signal.Signals, tmp_path: Path) -> None:
    with leaseq_server(cwd=tmp_path) as server, leaseq.connect(server.url) as client:
        client.enqueue("t")

        code = server.stop(number)

    assert code == 0
    assert [json.loads(line)["event"] for line in server.log.splitlines()] == [
        "stopping",
        "stopped",
    ]


def test_a_lease_that_waits_is_answered_empty_when_the_server_stops(tmp_path: Path) -> None:
    answers: list[list[LeasedTask]] = []

    def lease() -> None:
        request = LeaseRequest(worker_id="w", wait=timedelta(seconds=30))
        answers.append(run_blocking(connection.queue.lease(request)))

    with leaseq_server(cwd=tmp_path) as server, open_blocking(server.url) as connection:
        waiting = threading.Thread(target=lease)
        waiting.start()
        waiting.join(0.5)
        code = server.stop()
        waiting.join(SOON)

    assert code == 0
    assert answers == [[]]


def test_a_call_in_flight_finishes_when_the_server_stops(tmp_path: Path) -> None:
    with leaseq_server(cwd=tmp_path) as server:
        assert server.start_line
        with locked(tmp_path / "leaseq.db"):
            enqueuing = begun(server)
            server.send(signal.SIGTERM)
            enqueuing.join(0.5)
        enqueuing.join(SOON)
        code = server.ended()
    with leaseq.connect(f"sqlite:///{tmp_path}/leaseq.db") as client:
        assert enqueuing.error is None
        assert enqueuing.task_id
        assert client.get(enqueuing.task_id).status is leaseq.Status.QUEUED

    assert code == 0


def test_a_second_signal_ends_a_server_at_once(tmp_path: Path) -> None:
    with leaseq_server("--grace", "1m", cwd=tmp_path) as server:
        assert server.start_line
        with locked(tmp_path / "leaseq.db"):
            enqueuing = begun(server)
            server.send(signal.SIGTERM)
            enqueuing.join(0.5)
            code = server.stop()
        enqueuing.join(SOON)

    assert code == 128 + signal.SIGTERM
    assert isinstance(enqueuing.error, leaseq.StorageUnavailableError)


def test_a_stop_that_takes_too_long_is_cut_short(tmp_path: Path) -> None:
    with leaseq_server("--grace", "100ms", cwd=tmp_path) as server:
        assert server.start_line
        with locked(tmp_path / "leaseq.db"):
            enqueuing = begun(server)
            code = server.stop()
        enqueuing.join(SOON)

    assert code == 1
    assert "did not stop in time" in server.log
    assert isinstance(enqueuing.error, leaseq.StorageUnavailableError)


def test_what_is_acknowledged_while_a_server_stops_is_stored(tmp_path: Path) -> None:
    acknowledged: list[str] = []
    refusals: list[Exception] = []
    busy = threading.Barrier(9)

    def enqueue_until_refused(url: str) -> None:
        with open_blocking(url, deadline=timedelta(seconds=2)) as connection:
            acknowledged.append(stored_by(connection))
            busy.wait(SOON)
            try:
                while True:
                    acknowledged.append(stored_by(connection))
            except leaseq.TaskQueueError as error:
                refusals.append(error)

    def stored_by(connection: Connection) -> str:
        [enqueued] = run_blocking(connection.queue.enqueue([leaseq.NewTask(type="t")]))
        if isinstance(enqueued, leaseq.TaskQueueError):
            raise enqueued
        return enqueued.task.id

    with leaseq_server(cwd=tmp_path) as server:
        threads = [
            threading.Thread(target=enqueue_until_refused, args=(server.url,)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        busy.wait(SOON)
        code = server.stop()
        for thread in threads:
            thread.join(SOON)
    with leaseq.connect(f"sqlite:///{tmp_path}/leaseq.db") as client:
        stored = {client.get(task_id).id for task_id in acknowledged}

    assert code == 0
    assert stored == set(acknowledged)
    assert len(refusals) == 8
    assert all(isinstance(error, leaseq.StorageUnavailableError) for error in refusals)
    assert "Traceback" not in server.log


def test_what_was_acknowledged_outlasts_a_killed_server(tmp_path: Path) -> None:
    with leaseq_server(cwd=tmp_path) as server, leaseq.connect(server.url) as client:
        ids = {client.enqueue("t", {"n": n}).task.id for n in range(20)}
        server.stop(signal.SIGKILL)

    with leaseq_server(cwd=tmp_path) as server, leaseq.connect(server.url) as client:
        kept = {task.id for task in client.list_tasks(size=100).tasks}

    assert kept == ids


def test_a_port_that_is_taken_ends_the_start(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        done = run_leaseq("server", "--grpc", address, cwd=tmp_path)

    assert done.returncode == 1
    assert done.stderr == f"leaseq: cannot listen on {address}: Address already in use\n"


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--grpc", "0.0.0.0:0"], 2, "--insecure"),
        (["--storage", "sqlite:///no/folder/tasks.db"], 1, "its folder does not exist"),
        (
            ["--storage", "postgresql://u:hunter2@127.0.0.1:1/db", "--storage-wait", "0"],
            1,
            "storage postgresql://u:***@127.0.0.1:1/db: ",
        ),
    ],
    ids=["for all to reach", "no folder", "no database"],
)
def test_a_server_that_cannot_serve_says_why(
    arguments: list[str], code: int, told: str, tmp_path: Path
) -> None:
    done = run_leaseq("server", *arguments, cwd=tmp_path)

    assert done.returncode == code
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "hunter2" not in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_start_waits_for_a_storage_that_is_away_and_can_be_broken_off(tmp_path: Path) -> None:
    storage = "postgresql://u:hunter2@127.0.0.1:1/db"

    with leaseq_server("--storage", storage, cwd=tmp_path) as server:
        for _ in range(300):
            if "trying again" in server.log:
                break
            threading.Event().wait(0.1)
        code = server.stop()

    assert code == 0
    assert "trying again" in server.log
    assert "hunter2" not in server.log


def test_an_insecure_server_is_reached_by_any_address(tmp_path: Path) -> None:
    with leaseq_server("--insecure", "--grpc", "0.0.0.0:0", cwd=tmp_path) as server:
        port = server.address.rpartition(":")[2]

        with leaseq.connect(f"grpc://127.0.0.1:{port}") as client:
            assert client.list_queues() == []
        assert f"--server 127.0.0.1:{port}" in server.start_line


def test_a_reader_that_goes_away_ends_a_command_without_noise(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    with leaseq.connect(url) as client:
        client.enqueue_many([leaseq.NewTask(type="t") for _ in range(1000)])

    with subprocess.Popen(
        [sys.executable, "-m", "leaseq", "tasks", "list", "--server", url, "--limit", "1000"],
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as listing:
        assert listing.stdout is not None
        assert listing.stderr is not None
        listing.stdout.readline()
        listing.stdout.close()
        noise = listing.stderr.read()
        code = listing.wait(SOON)

    assert noise == b""
    assert code != 0
