"""Ctrl-C at chosen moments of a command, from the first import to the last breath."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from leaseq_process import SOON, clean_environment

INTERRUPTED = 130

# Whoever starts the tests in the background may have them, and so their children, ignore Ctrl-C.
PROGRAM = """
import atexit, os, signal, sys

def strike():
    os.kill(os.getpid(), signal.SIGINT)

class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            strike()

class Dying:
    def __del__(self):
        if {module!r} == "a finaliser":
            strike()

signal.signal(signal.SIGINT, signal.{handler})
sys.meta_path.insert(0, AtImport())
if {module!r} == "the end":
    atexit.register(strike)
import leaseq.entrypoints.cli.start as start
sys.argv = ["leaseq", "queues", "list", "--server", "sqlite:///tasks.db"]
import leaseq.entrypoints.printable as printable
spelt = printable.printable
def spell(text):
    Dying()
    return spelt(text)
printable.printable = spell
start.main()
"""


def interrupted_at(
    module: str, *, cwd: Path, handler: str = "default_int_handler"
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module, handler=handler)],
        cwd=cwd,
        env=clean_environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=SOON,
    )


@pytest.mark.parametrize(
    "module",
    [
        "leaseq.entrypoints.cli.main",
        "typer",
        "attr",
        "leaseq.entrypoints.cli.worker",
        "leaseq.entrypoints.host",
        "sqlite3",
        "a finaliser",
    ],
)
def test_ctrl_c_is_quiet_at_any_moment(module: str, tmp_path: Path) -> None:
    ended = interrupted_at(module, cwd=tmp_path)

    assert ended.stderr.strip() == ""
    assert ended.returncode == INTERRUPTED


def test_ctrl_c_does_not_undo_what_is_over(tmp_path: Path) -> None:
    ended = interrupted_at("the end", cwd=tmp_path)

    assert ended.stderr == ""
    assert ended.returncode == 0


@pytest.mark.parametrize("module", ["typer", "leaseq.entrypoints.host"])
def test_a_command_that_was_started_to_ignore_ctrl_c_does(module: str, tmp_path: Path) -> None:
    ended = interrupted_at(module, cwd=tmp_path, handler="SIG_IGN")

    assert ended.returncode == 0
    assert ended.stdout.startswith("queue\t")
