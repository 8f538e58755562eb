"""Commands whose standard output cannot be written."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from leaseq_process import SOON, clean_environment, run_leaseq

FULL = "/dev/full"
LEASEQ = (sys.executable, "-m", "leaseq")
pytestmark = pytest.mark.skipif(not Path(FULL).exists(), reason="the system has no full device")


def run_into(redirection: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command on the storage in `cwd`, with its output redirected as a shell says it."""
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {redirection}', "sh", *LEASEQ, *arguments],
        cwd=cwd,
        env=clean_environment(LEASEQ_SERVER="sqlite:///tasks.db"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON,
    )


@pytest.mark.parametrize("redirection", [f">{FULL}", ">&-"], ids=["full", "closed"])
@pytest.mark.parametrize(
    "arguments", [["tasks", "list"], ["tasks", "list", "--json"], ["queues", "list"]], ids=" ".join
)
def test_output_that_cannot_be_written_is_told_in_one_line(
    arguments: list[str], redirection: str, tmp_path: Path
) -> None:
    ended = run_into(redirection, *arguments, cwd=tmp_path)

    assert ended.returncode == 1
    assert re.fullmatch(r"leaseq: cannot write the output: .+\n", ended.stderr)


@pytest.mark.parametrize(
    "arguments", [["--help"], ["--version"], ["tasks", "--help"], ["migrate", "-h"]], ids=" ".join
)
def test_help_that_cannot_be_written_is_told_in_one_line(
    arguments: list[str], tmp_path: Path
) -> None:
    ended = run_into(f">{FULL}", *arguments, cwd=tmp_path)

    assert ended.returncode == 1
    assert re.fullmatch(r"leaseq: cannot write the output: .+\n", ended.stderr)


@pytest.mark.parametrize("redirection", [f"2>{FULL}", "2>&-"], ids=["full", "closed"])
def test_a_warning_that_cannot_be_written_stops_no_command(
    redirection: str, tmp_path: Path
) -> None:
    ended = run_into(redirection, "queues", "pause", "q", cwd=tmp_path)

    assert ended.returncode == 0
    assert ended.stdout == "paused q\n"


@pytest.mark.parametrize("form", [[], ["--json"]], ids=["for people", "as JSON"])
@pytest.mark.parametrize("redirection", [f">{FULL}", ">&-"], ids=["full", "closed"])
def test_enqueue_tells_that_the_task_is_stored_all_the_same(
    redirection: str, form: list[str], tmp_path: Path
) -> None:
    ended = run_into(redirection, "enqueue", "--type", "t", *form, cwd=tmp_path)

    told = re.fullmatch(
        r"leaseq: task (\S+) is stored, but cannot write the output: .+\n", ended.stderr
    )
    assert ended.returncode == 1
    assert told, ended.stderr
    stored = run_leaseq("tasks", "show", told[1], "--server", "sqlite:///tasks.db", cwd=tmp_path)
    assert stored.returncode == 0
