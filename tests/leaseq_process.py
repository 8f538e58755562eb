"""The `leaseq` command as processes, each of which ends with its test."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SOON = 30.0
"""Seconds in which everything here must happen, on a machine that is busy."""


FREE_PORTS = {"LEASEQ_GRPC": "127.0.0.1:0", "LEASEQ_HTTP": "off"}


def clean_environment(**variables: str) -> dict[str, str]:
    """Return this process's environment without settings of leaseq, and with `variables`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LEASEQ_")}
    return kept | variables


def run_leaseq(
    *arguments: str, cwd: Path, text: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-m", "leaseq", *arguments],
        cwd=cwd,
        env=clean_environment(**(env or {})),
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON,
    )
    if sys.flags.dev_mode:
        done.stderr = _without_slow_steps(done.stderr)
    return done


def _without_slow_steps(log: str) -> str:
    """Leave out what asyncio, in Python's development mode, says of steps that took long."""
    lines = log.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith('{"event": "Executing <'))


class ServerProcess:
    """A `leaseq server` that has said, or will say, where it is."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log
        self._start_line = ""

    @property
    def start_line(self) -> str:
        """What it printed when it was ready; an empty text if it ended before."""
        if not self._start_line and self._process.stdout is not None:
            ready, _, _ = select.select([self._process.stdout], [], [], SOON)
            assert ready, f"no start line; log: {self.log}"
            self._start_line = self._process.stdout.readline()
        return self._start_line

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> str:
        found = re.search(r"gRPC on (\S+),", self.start_line)
        assert found, f"no address in {self.start_line!r}; log: {self.log}"
        return found[1]

    @property
    def http_port(self) -> int:
        found = re.search(r"HTTP on \S+:(\d+),", self.start_line)
        assert found, f"no HTTP in {self.start_line!r}; log: {self.log}"
        return int(found[1])

    @property
    def url(self) -> str:
        return f"grpc://{self.address}"

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    def send(self, number: int) -> None:
        self._process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end, and return its exit code."""
        return self._process.wait(SOON)

    def stop(self, number: int = signal.SIGTERM) -> int:
        self.send(number)
        return self.ended()


@contextmanager
def leaseq_server(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """Run a server on a free port until the block ends, however it ends."""
    log = cwd / f"server-{os.urandom(4).hex()}.log"
    with (
        log.open("w", encoding="utf-8") as stderr,
        subprocess.Popen(
            [sys.executable, "-m", "leaseq", "server", *arguments],
            cwd=cwd,
            env=clean_environment(**FREE_PORTS | dict(env or {})),
            stdout=subprocess.PIPE,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
            text=True,
        ) as process,
    ):
        try:
            yield ServerProcess(process, log)
        finally:
            process.kill()
            process.wait(SOON)
