"""The HTTP door of real servers, and what its connections may take their time over."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import leaseq
from http_doors import http_server
from leaseq.adapters.http import bodies, connections
from leaseq.entrypoints.settings import DEFAULT_HTTP
from leaseq_process import SOON, ServerProcess, leaseq_server, run_leaseq

ON_A_FREE_PORT = ("--http", "127.0.0.1:0")
A_MOMENT = timedelta(milliseconds=200)
HEAD = b"POST /enqueue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
BODY = b'{"type": "t"}'
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


@contextmanager
def connected(server: ServerProcess) -> Iterator[http.client.HTTPConnection]:
    with closing(http.client.HTTPConnection("127.0.0.1", server.http_port, timeout=SOON)) as made:
        yield made


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: str | None = None
) -> tuple[int, Any]:
    headers = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def until_hung_up(asking: http.client.HTTPConnection) -> None:
    """Ask until the server takes no more: over new connections too, which `asking` makes."""
    try:
        while True:
            ask(asking, "GET", "/healthz")
    except (http.client.HTTPException, OSError):
        return


def test_a_task_of_http_is_a_task_of_grpc(tmp_path: Path) -> None:
    with (
        leaseq_server(*ON_A_FREE_PORT, cwd=tmp_path) as server,
        connected(server) as asking,
        leaseq.connect(server.url) as client,
    ):
        status, told = ask(asking, "POST", "/enqueue", '{"type": "t", "payload": {"n": 1.0}}')
        task = client.get(told["task_id"])
        shown = ask(asking, "GET", f"/v1/tasks/{task.id}")
        ready = ask(asking, "GET", "/readyz")
        code = server.stop()

    assert status == 201
    assert task.payload == '{"n": 1.0}'
    assert shown == (200, shown[1] | {"id": task.id, "status": "queued"})
    assert ready == (200, ready[1] | {"ready": True, "failed": []})
    assert code == 0
    assert "Traceback" not in server.log
    assert "uvicorn" not in server.log


def test_one_key_makes_one_task_through_two_servers_and_both_doors(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    storage = ("--storage", postgres_url, "--schema", postgres_schema)
    ids: list[str] = []

    def by_http(server: ServerProcess) -> None:
        with connected(server) as asking:
            _, told = ask(asking, "POST", "/enqueue", '{"type": "t", "idempotency_key": "k"}')
            ids.append(told["task_id"])

    def by_grpc(server: ServerProcess) -> None:
        with leaseq.connect(server.url) as client:
            ids.append(client.enqueue("t", idempotency_key="k").task.id)

    with (
        leaseq_server(*ON_A_FREE_PORT, *storage, cwd=tmp_path) as one,
        leaseq_server(*ON_A_FREE_PORT, *storage, cwd=tmp_path) as two,
    ):
        assert one.start_line
        assert two.start_line
        threads = [
            threading.Thread(target=door, args=(server,))
            for door in (by_http, by_grpc)
            for server in (one, two)
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(SOON)

    assert len(ids) == len(threads)
    assert len(set(ids)) == 1


def test_an_address_that_is_taken_ends_a_start_only_if_it_was_asked_for(tmp_path: Path) -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"

        done = run_leaseq("server", "--grpc", "127.0.0.1:0", "--http", address, cwd=tmp_path)

    with ExitStack() as stack:
        with suppress(OSError):  # somebody else has it: as well
            stack.enter_context(socket.create_server((DEFAULT_HTTP.host, DEFAULT_HTTP.port)))
        with leaseq_server(cwd=tmp_path, env={"LEASEQ_HTTP": ""}) as server:
            line = server.start_line

    assert done.returncode == 1
    assert done.stderr == f"leaseq: cannot listen on {address} for HTTP: Address already in use\n"
    assert "serves gRPC" in line
    assert "HTTP" not in line
    assert f"cannot listen on {DEFAULT_HTTP}" in server.log


def test_a_server_that_others_can_reach_must_be_asked_for(tmp_path: Path) -> None:
    done = run_leaseq("server", "--http", "0.0.0.0:0", cwd=tmp_path)

    assert done.returncode == 2
    assert "--http: 0.0.0.0:0" in done.stderr
    assert "--insecure" in done.stderr


def test_without_the_extra_there_is_no_http_unless_it_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "uvicorn").mkdir()
    (tmp_path / "uvicorn" / "__init__.py").write_text(
        'raise ModuleNotFoundError("No module named \'uvicorn\'", name="uvicorn")\n'
    )
    missing = {"PYTHONPATH": str(tmp_path), "LEASEQ_HTTP": ""}

    asked = run_leaseq("server", *ON_A_FREE_PORT, cwd=tmp_path, env=missing)
    with leaseq_server(cwd=tmp_path, env=missing) as server:
        line = server.start_line

    assert asked.returncode == 1
    assert asked.stderr == (
        "leaseq: HTTP needs what is not installed: pip install 'leaseq[http]'\n"
    )
    assert "serves gRPC" in line
    assert "HTTP" not in line


def test_a_stopping_server_finishes_what_it_has_begun(tmp_path: Path) -> None:
    with leaseq_server(*ON_A_FREE_PORT, cwd=tmp_path) as server, connected(server) as asking:
        assert ask(asking, "GET", "/healthz") == (200, {"status": "alive"})
        with socket.create_connection(("127.0.0.1", server.http_port), SOON) as slow:
            slow.sendall(WHOLE[:-1])
            assert ask(asking, "GET", "/healthz")[0] == 200
            server.send(signal.SIGTERM)
            until_hung_up(asking)
            slow.sendall(WHOLE[-1:])
            answer = slow.makefile("rb").read()
        code = server.ended()

    assert answer.startswith(b"HTTP/1.1 201 ")
    assert b'"created": true' in answer
    assert code == 0
    assert "Traceback" not in server.log


# --- connections, one by one


async def told(port: int, *parts: bytes, half_close: bool = False) -> bytes:
    """Send `parts`, and return all that comes until the server hangs up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        if half_close:
            writer.write_eof()
        async with asyncio.timeout(SOON):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"POST", HEAD], ids=["nothing", "a word", "half a head"])
async def test_a_head_that_does_not_come_ends_the_connection(
    begun: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_WITHIN", A_MOMENT)

    async with http_server() as (_, port):
        answer = await told(port, begun)

    assert answer == b""


async def test_a_head_that_trickles_in_is_not_waited_for_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HEAD_WITHIN", A_MOMENT)

    async with http_server() as (_, port), asyncio.timeout(SOON):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HEAD)
        # What arrives after the end is answered by a reset, which is an end as well.
        closed = asyncio.create_task(reader.read(1))
        while not closed.done():
            writer.write(b"X-More: 1\r\n")
            await asyncio.wait([closed], timeout=0.02)
        writer.close()

    assert isinstance(closed.exception(), ConnectionError) or closed.result() == b""


async def test_a_body_that_does_not_come_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "BODY_WITHIN", A_MOMENT)

    async with http_server() as (_, port):
        answer = await told(port, WHOLE[:-1])

    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"reason": "BODY_TOO_SLOW"' in answer


async def test_who_has_closed_his_half_gets_his_answer() -> None:
    async with http_server() as (_, port):
        answer = await told(port, WHOLE, half_close=True)
        cut = await told(port, WHOLE[:-1], half_close=True)

    assert answer.startswith(b"HTTP/1.1 201 ")
    assert cut == b""


async def test_a_body_without_end_is_not_read_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "_DISCARDED_BYTES", 8 * 1024 * 1024)
    chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"

    async with http_server() as (_, port):
        try:
            answer = await told(port, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 64)
        except ConnectionError:
            answer = b"HTTP/1.1 413 "  # hung up on while it was still talking

    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_body_that_is_announced_as_too_large_is_not_asked_for() -> None:
    head = HEAD + b"Content-Length: 999999999\r\nExpect: 100-continue\r\n\r\n"

    async with http_server() as (_, port):
        answer = await told(port, head)

    assert answer.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    "garbage",
    [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"\x00" * 99_999],
    ids=["TLS", "zeros"],
)
async def test_what_is_no_http_is_answered_and_hung_up_on(garbage: bytes) -> None:
    async with http_server() as (_, port):
        answer = await told(port, garbage + b"\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 400 ")


async def test_a_request_that_outlasts_the_grace_is_cut_off() -> None:
    async with http_server() as (server, port):
        begun = asyncio.create_task(told(port, WHOLE[:-1]))
        async with asyncio.timeout(SOON):
            while not server.in_flight:  # noqa: ASYNC110  nobody is told of it
                await asyncio.sleep(0.01)
        await server.drain(timedelta(0))
        answer = await begun

    assert answer.startswith(b"HTTP/1.1 503 ")
    assert b'"reason": "DRAINING"' in answer
