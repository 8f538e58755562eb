from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

import leaseq
from cli_runs import give_up
from leaseq.entrypoints.connection import open_blocking
from leaseq_process import SOON, clean_environment


@attrs.define
class Terminal:
    """A command on a terminal of 160 columns."""

    process: subprocess.Popen[bytes]
    _master: int
    _seen: bytes = b""

    def read_until(self, text: str) -> str:
        """Return all that was shown, once it holds `text`; at its end, whatever it holds."""
        ends_at = time.monotonic() + SOON
        while text.encode() not in self._seen and time.monotonic() < ends_at:
            ready, _, _ = select.select([self._master], [], [], 0.2)
            if ready:
                try:
                    self._seen += os.read(self._master, 65536)
                except OSError:  # how a terminal says that its last user is gone
                    break
        return self._seen.decode()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def ended(self) -> tuple[int, str]:
        """Return the exit code and all that was shown."""
        shown = self.read_until("\0")
        return self.process.wait(SOON), shown


@contextmanager
def on_terminal(*arguments: str, cwd: Path) -> Iterator[Terminal]:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "leaseq", *arguments],
        cwd=cwd,
        env=clean_environment(TERM="xterm-256color", COLUMNS="160"),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait(SOON)
        os.close(master)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/tasks.db"


def test_a_cell_has_the_colour_of_its_column_and_not_of_its_text(url: str, tmp_path: Path) -> None:
    with open_blocking(url) as connection:
        give_up(connection, queue="dead", message="x")

    with on_terminal("dead", "list", "--server", url, cwd=tmp_path) as terminal:
        code, shown = terminal.ended()

    assert code == 0
    assert "\x1b[31mfailed" in shown
    assert "mdead" not in shown
    assert "dead" in shown


def test_a_table_shows_errors_as_they_were_written(url: str, tmp_path: Path) -> None:
    with open_blocking(url) as connection:
        [task_id] = give_up(connection, message="[red]no\x1b[2J[/red]")

    with on_terminal("dead", "list", "--server", url, cwd=tmp_path) as terminal:
        code, shown = terminal.ended()

    assert code == 0
    assert task_id in shown
    assert r"ValueError: [red]no\x1b[2J[/red]" in shown
    assert "\x1b[2J" not in shown
    assert "\x1b[" in shown


@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, 0), ("n\n", 1, 21)], ids=["yes", "no"]
)
def test_many_tasks_are_asked_about(
    answer: str, code: int, left: int, url: str, tmp_path: Path
) -> None:
    with open_blocking(url) as connection:
        give_up(connection, 21, queue="q")

    command = ("dead", "delete", "--all", "--queue", "q", "--server", url)
    with on_terminal(*command, cwd=tmp_path) as terminal:
        question = terminal.read_until("?")
        terminal.type(answer)
        ended = terminal.ended()

    with leaseq.connect(url) as client:
        assert len(client.list_tasks().tasks) == left
    assert "delete 21 tasks?" in question
    assert ended[0] == code
    assert "Traceback" not in ended[1]


def test_a_long_command_counts_on_its_way(url: str, tmp_path: Path) -> None:
    with open_blocking(url) as connection:
        for _ in range(2):
            give_up(connection, 1000, queue="q")

    command = ("dead", "delete", "--all", "--queue", "q", "--yes", "--server", url)
    with on_terminal(*command, cwd=tmp_path) as terminal:
        code, shown = terminal.ended()

    assert code == 0
    assert "looked at 2000 tasks" in shown
    assert "deleted 2000 of 2000 tasks" in shown
    assert shown.endswith("deleted 2000 tasks\r\n")


def test_a_list_by_error_counts_until_it_finds(url: str, tmp_path: Path) -> None:
    with open_blocking(url) as connection:
        [rare] = give_up(connection, message="rare")
        for _ in range(2):
            give_up(connection, 1000)

    command = ("dead", "list", "--error", "rare", "--server", url)
    with on_terminal(*command, cwd=tmp_path) as terminal:
        code, shown = terminal.ended()

    assert code == 0
    assert "looked at 2001 tasks" in shown
    assert rare in shown


def test_ctrl_c_ends_a_command_without_noise(url: str, tmp_path: Path) -> None:
    with open_blocking(url) as connection:
        give_up(connection, 21, queue="q")

    command = ("dead", "requeue", "--all", "--queue", "q", "--server", url)
    with on_terminal(*command, cwd=tmp_path) as terminal:
        terminal.read_until("?")
        # A signal between the question and the wait for its answer ends no wait; people repeat it.
        while terminal.process.poll() is None:
            terminal.process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                terminal.process.wait(0.2)
        code, shown = terminal.ended()

    assert code in {1, 130}
    assert "Traceback" not in shown
    assert "KeyboardInterrupt" not in shown
