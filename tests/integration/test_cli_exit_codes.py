"""The exit codes of the commands that run until they are stopped; the others are unit tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from leaseq_process import SOON, clean_environment, leaseq_server, run_leaseq

NOWHERE = "sqlite:////no-such-folder/tasks.db"
WORKER = """
import leaseq

worker = leaseq.Worker("memory://", queues=["q"])


@worker.task("t")
def t(payload: dict) -> None: ...
"""


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["server", "--storage", NOWHERE], 1, "no-such-folder"),
        (["server", "--grpc", "nowhere"], 2, "--grpc"),
        (["server", "--grpc", "0.0.0.0:7480"], 2, "--insecure"),
        (["worker", "no_such_module:worker"], 2, "no_such_module"),
        (["worker"], 2, "MODULE:ATTRIBUTE"),
        (["demo"], 1, "the demo failed"),
        (["demo", "--loud"], 2, "--loud"),
    ],
)
def test_a_refusal_is_1_and_misuse_is_2(
    arguments: list[str], code: int, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "leaseq-demo.db").mkdir()

    ended = run_leaseq(*arguments, cwd=tmp_path)

    assert ended.returncode == code
    assert ended.stdout == ""
    assert reason in ended.stderr.splitlines()[-1]


def test_a_server_that_is_stopped_ends_with_0(tmp_path: Path) -> None:
    with leaseq_server("--storage", "memory://", cwd=tmp_path) as server:
        assert server.start_line

        assert server.stop() == 0


def test_a_worker_that_is_stopped_ends_with_0(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text(WORKER)
    with subprocess.Popen(
        [sys.executable, "-m", "leaseq", "worker", "handlers:worker", "--log-format", "json"],
        cwd=tmp_path,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            assert "worker started" in process.stderr.readline()
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=SOON)
        finally:
            process.kill()

    assert process.returncode == 0
