"""Very many workers that wait for tasks, half of whom die."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import grpc
from grpc_health.v1 import health_pb2

import leaseq
from leaseq_process import SOON, clean_environment
from trials.tasks import naps, stored, until

_HERE = Path(__file__).parent
_CHANNELS = 10


@attrs.frozen(kw_only=True)
class Outcome:
    """How the server bore it."""

    looks_per_second: float
    health_p99: float
    """Seconds."""

    health_worst: float
    gone_after: float
    """Seconds from the kill until nobody waited for the killed."""

    taken_after: float
    """Seconds from an enqueue, after the kill, until a living worker had the task."""


def poll_idly(storage: str, *, calls: int, wait: float, seconds: float) -> Outcome:
    """Let `calls` Leases wait in two processes, watch for `seconds`, kill one process."""
    with ExitStack() as stack:
        server = stack.enter_context(_counted_server(storage))
        doomed = stack.enter_context(_pollers(server.address, calls // 2, wait))
        stack.enter_context(_pollers(server.address, calls // 2, wait))
        until(lambda: server.ask()[1] == calls)
        looks, began = server.ask()[0], time.monotonic()
        latencies = sorted(_health_latencies(server.address, seconds))
        rate = (server.ask()[0] - looks) / (time.monotonic() - began)
        doomed.kill()
        killed_at = time.monotonic()
        until(lambda: server.ask()[1] <= calls // 2)
        gone_after = time.monotonic() - killed_at
        return Outcome(
            looks_per_second=rate,
            health_p99=latencies[int(len(latencies) * 0.99)],
            health_worst=latencies[-1],
            gone_after=gone_after,
            taken_after=_taken_after(server.address),
        )


class _CountedServer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = f"127.0.0.1:{self._line()}"

    def ask(self) -> tuple[int, int]:
        """Return how often it looked, and how many calls it is answering."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        looks, in_flight = self._line().split()
        return int(looks), int(in_flight)

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@contextmanager
def _counted_server(storage: str) -> Iterator[_CountedServer]:
    with _process("counted_server.py", storage, stdout=subprocess.PIPE) as process:
        yield _CountedServer(process)


@contextmanager
def _pollers(address: str, calls: int, wait: float) -> Iterator[subprocess.Popen[str]]:
    numbers = (str(calls), str(_CHANNELS), str(wait))
    with _process("idle_pollers.py", address, *numbers, stdout=subprocess.DEVNULL) as process:
        yield process


@contextmanager
def _process(program: str, *arguments: str, stdout: int) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, str(_HERE / program), *arguments],
        env=clean_environment(),
        stdin=subprocess.PIPE,
        stdout=stdout,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait(SOON)


def _health_latencies(address: str, seconds: float) -> Iterator[float]:
    ends_at = time.monotonic() + seconds
    with grpc.insecure_channel(address) as channel:
        check = channel.unary_unary(
            "/grpc.health.v1.Health/Check",
            request_serializer=health_pb2.HealthCheckRequest.SerializeToString,
            response_deserializer=health_pb2.HealthCheckResponse.FromString,
        )
        while (asked_at := time.monotonic()) < ends_at:
            reply = check(health_pb2.HealthCheckRequest(), timeout=SOON)
            assert reply.status == health_pb2.HealthCheckResponse.SERVING
            yield time.monotonic() - asked_at
            time.sleep(0.01)


def _taken_after(address: str) -> float:
    with leaseq.connect(f"grpc://{address}") as client:
        enqueued_at = time.monotonic()
        [task_id] = stored(client, naps(1))
        until(lambda: client.get(task_id).status == "leased")
        return time.monotonic() - enqueued_at
