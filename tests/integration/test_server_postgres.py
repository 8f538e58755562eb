from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from urllib.parse import quote, urlsplit

import leaseq
from leaseq_process import SOON, leaseq_server, run_leaseq


class Forwarder(threading.Thread):
    """A way to a database that opens when the test says so."""

    def __init__(self, postgres_url: str) -> None:
        super().__init__(daemon=True)
        parts = urlsplit(postgres_url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 5432)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        at = self._socket.getsockname()[1]
        user = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{user}@127.0.0.1:{at}").geturl()

    def run(self) -> None:
        self._socket.listen()
        with suppress(OSError):
            while True:
                near, _ = self._socket.accept()
                far = socket.create_connection(self._target)
                for source, sink in ((near, far), (far, near)):
                    threading.Thread(target=_pump, args=(source, sink), daemon=True).start()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with closing(source), suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)


def test_eight_servers_that_start_at_once_on_an_empty_database_all_serve(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    storage = ("--storage", postgres_url, "--schema", postgres_schema)

    with ExitStack() as stack:
        servers = [stack.enter_context(leaseq_server(*storage, cwd=tmp_path)) for _ in range(8)]
        clients = [stack.enter_context(leaseq.connect(server.url)) for server in servers]
        ids = {client.enqueue("t").task.id for client in clients}
        seen = [{task.id for task in client.list_tasks().tasks} for client in clients]
        codes = [server.stop() for server in servers]

    assert seen == [ids] * 8
    assert codes == [0] * 8
    # Of leaseq alone: an interpreter in development mode has things of its own to say.
    said = [
        [json.loads(line)["event"] for line in server.log.splitlines() if '"leaseq.' in line]
        for server in servers
    ]
    assert said == [["stopping", "stopped"]] * 8


def test_a_storage_url_alone_is_enough_for_a_client(
    postgres_url: str, postgres_schema: str
) -> None:
    url = f"{postgres_url}?schema={quote(postgres_schema)}"

    with leaseq.connect(url) as client, leaseq.connect(url) as other:
        task_id = client.enqueue("t").task.id

        assert other.get(task_id).status is leaseq.Status.QUEUED


def test_a_schema_is_migrated_once(postgres_url: str, postgres_schema: str, tmp_path: Path) -> None:
    command = ("migrate", "--storage", postgres_url, "--schema", postgres_schema, "--json")

    first = run_leaseq(*command, cwd=tmp_path)
    second = run_leaseq(*command, cwd=tmp_path)

    assert json.loads(first.stdout)["applied"]
    assert json.loads(second.stdout)["applied"] == []


def test_a_server_started_before_its_database_serves_once_that_is_there(
    postgres_url: str, postgres_schema: str, tmp_path: Path
) -> None:
    with (
        closing(Forwarder(postgres_url)) as forwarder,
        leaseq_server(
            "--storage", forwarder.url, "--schema", postgres_schema, cwd=tmp_path
        ) as server,
    ):
        for _ in range(int(SOON * 10)):
            if "trying again" in server.log:
                break
            threading.Event().wait(0.1)
        forwarder.start()
        with leaseq.connect(server.url) as client:
            client.enqueue("t")
        code = server.stop()

    assert "trying again" in server.log
    assert code == 0
