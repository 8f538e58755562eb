"""Places for servers and workers: a process may die there, and another takes over."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote

import attrs

from leaseq_process import SOON, ServerProcess, clean_environment, leaseq_server
from postgres_provider.wheel import free_port

_PROGRAM = Path(__file__).parent / "worker_of_trials.py"


@attrs.frozen(kw_only=True)
class Note:
    """What a handler wrote down."""

    word: str
    task_id: str
    at: float
    """By the monotonic clock of this computer."""


@attrs.define(kw_only=True)
class Notebook:
    """What all handlers of a trial wrote down."""

    path: Path

    def read(self) -> list[Note]:
        if not self.path.exists():
            return []
        lines = (line.split() for line in self.path.read_text().splitlines())
        return [Note(word=word, task_id=task_id, at=float(at)) for word, task_id, at in lines]

    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    def said(self, word: str) -> list[str]:
        return [note.task_id for note in self.read() if note.word == word]


class ServerPlace:
    """One address, at which servers come and go."""

    def __init__(
        self, stack: ExitStack, storage: str, folder: Path, env: Mapping[str, str] | None = None
    ) -> None:
        self._stack = stack
        self._storage = storage
        self._folder = folder
        self._address = f"127.0.0.1:{free_port()}"
        self._env = {"LEASEQ_GRPC": self._address, **(env or {})}
        self.url = f"grpc://{self._address}"
        self.process = self._started()

    def kill(self) -> None:
        assert self.process.stop(signal.SIGKILL) == -signal.SIGKILL, self.process.log

    def start(self) -> None:
        self.process = self._started()
        assert self.process.start_line, self.process.log

    def _started(self) -> ServerProcess:
        return self._stack.enter_context(
            leaseq_server(
                *("--storage", self._storage, "--reaper-interval", "200ms"),
                cwd=self._folder,
                env=self._env,
            )
        )


@attrs.frozen(kw_only=True)
class Job:
    """What every worker at a place is told."""

    url: str
    notebook: Notebook
    lease: float = 2.0
    grace: float = 5.0
    concurrency: int = 4
    env: Mapping[str, str] = attrs.Factory(dict)


class WorkerPlace:
    """A place that is held by one worker at a time."""

    def __init__(self, stack: ExitStack, job: Job, log: Path) -> None:
        self._stack = stack
        self._job = job
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        job = self._job
        numbers = (job.lease, job.grace, job.concurrency)
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    str(_PROGRAM),
                    job.url,
                    str(job.notebook.path),
                    *map(str, numbers),
                ],
                env=clean_environment(**job.env),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._stack.callback(_ended, self._process)

    def stop(self, number: signal.Signals) -> int:
        """Send a signal, and return the exit code."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(SOON)

    @property
    def log(self) -> str:
        return self._log.read_text()


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait(SOON)


def twice(ids: Iterable[str]) -> set[str]:
    """Return the ids that come more than once."""
    seen: set[str] = set()
    return {task_id for task_id in ids if task_id in seen or seen.add(task_id)}  # type: ignore[func-returns-value]


def postgres_storage(url: str, schema: str) -> str:
    """Return the URL of a storage in a schema of a database."""
    return f"{url}{'&' if '?' in url else '?'}schema={quote(schema)}"
