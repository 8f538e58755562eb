"""Two servers whose clocks are wrong, on one database."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import attrs

import leaseq
from trials.places import Job, Notebook, ServerPlace, WorkerPlace, twice
from trials.tasks import all_tasks, naps, stored, unfinished, until

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
"""Where Debian's package libfaketime puts it."""

_CLOCKS = ("+10m", "-10m")
_DELAYS = (0.0, 0.5, 1.5, 3.0)
_LASTING = (0.0, 0.02, 1.6)
"""Of the handlers: the last outlives a lease that is not renewed."""

_LEASE = 1.0


@attrs.frozen(kw_only=True)
class Outcome:
    """What the wrong clocks did."""

    tasks: int
    statuses: Counter[str]
    attempts: Counter[int]
    started_twice: set[str]
    earliest: float
    """Seconds from the moment a task was due until it began, the least of all."""

    latest: float
    """Likewise the most of all."""

    clocks: list[float]
    """Seconds by which what the servers wrote differs from this computer's clock."""


def run_by_wrong_clocks(storage: str, folder: Path, *, tasks: int) -> Outcome:
    """Let two workers at each server, of whom every other has a wrong clock too, run tasks."""
    notebook = Notebook(path=folder / "notes")
    with ExitStack() as stack:
        servers = [ServerPlace(stack, storage, folder, _told(clock)) for clock in _CLOCKS]
        for server in servers:
            assert server.process.start_line, server.process.log
        for server, clock in zip(servers, _CLOCKS, strict=True):
            for name, env in (("right", {}), ("wrong", _told(clock))):
                job = Job(url=server.url, notebook=notebook, lease=_LEASE, env=env, concurrency=20)
                log = folder / f"worker-{name}{clock}.log"
                WorkerPlace(stack, job, log).start()
        clients = [stack.enter_context(leaseq.connect(server.url)) for server in servers]
        ids: list[str] = []
        clocks = []
        for number in range(tasks // 10):
            client = clients[number % len(clients)]
            delay = _DELAYS[number % len(_DELAYS)]
            seconds = _LASTING[number % len(_LASTING)]
            batch = stored(client, naps(10, seconds=seconds, delay=timedelta(seconds=delay)))
            ids += batch
            clocks.append(client.get(batch[0]).created_at.timestamp() - time.time())
            time.sleep(0.05)
        until(lambda: unfinished(clients[0]) == 0, seconds=60)
        views = list(all_tasks(clients[0]))
    assert {view.id for view in views} == set(ids)
    began = [note for note in notebook.read() if note.word == "began"]
    # The database is on this computer, and so goes by its clock.
    started_at = time.time() - time.monotonic()
    due_at: dict[str, float] = {view.id: view.run_after.timestamp() - started_at for view in views}
    waits = [note.at - due_at[note.task_id] for note in began]
    return Outcome(
        tasks=len(ids),
        statuses=Counter(view.status.value for view in views),
        attempts=Counter(view.attempts for view in views),
        started_twice=twice(note.task_id for note in began),
        earliest=min(waits),
        latest=max(waits),
        clocks=[min(clocks), max(clocks)],
    )


def _told(clock: str) -> dict[str, str]:
    return {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME": clock,
        # What goes on evenly goes on evenly, as with a clock that was set wrongly.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
