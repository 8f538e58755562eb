"""Workers that are told to stop at random moments of their work."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import attrs

import leaseq
from leaseq_process import leaseq_server
from trials.places import Job, Notebook, WorkerPlace, twice
from trials.tasks import all_tasks, naps, stored, unfinished, until

_LONG = 0.1
_GRACES = (5.0, 0.03)
"""More than any task takes, and less than the long ones take."""

_ENDS_WITHIN = 3.0
"""Beyond the grace: to report, give back, and leave Python on a busy computer."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What the stops left behind."""

    tasks: int
    statuses: Counter[str]
    charged: Counter[str]
    """Errors that cost an attempt, by type."""

    run_twice: set[str]
    exit_codes: Counter[int]
    slowest_stop: float
    """Seconds beyond the grace."""

    given_back: int
    """Handlers that began and were broken off."""


def stop_workers(storage: str, folder: Path, *, times: int, luck: random.Random) -> Outcome:
    """
    Stop working workers so often, at two places at once, then let one work to the end.

    Workers at one place get time enough to finish what runs; at the other they do not.
    """
    notebook = Notebook(path=folder / "notes")
    with ExitStack() as stack:
        server = stack.enter_context(leaseq_server("--storage", storage, cwd=folder))
        client = stack.enter_context(leaseq.connect(server.url))
        jobs = [Job(url=server.url, notebook=notebook, lease=30, grace=grace) for grace in _GRACES]
        places = [
            WorkerPlace(stack, job, folder / f"worker-{nth}.log") for nth, job in enumerate(jobs)
        ]
        lines = [
            _Line(place, job, random.Random(luck.random()), times // len(places))  # noqa: S311
            for place, job in zip(places, jobs, strict=True)
        ]
        ids = _fed_while_stopped(client, lines)
        places[0].start()
        until(lambda: unfinished(client) == 0, seconds=120)
        places[0].stop(signal.SIGTERM)
        return _outcome(client, ids, lines, notebook)


@attrs.define
class _Line:
    """One worker after another at one place."""

    place: WorkerPlace
    job: Job
    luck: random.Random
    left: int
    exit_codes: Counter[int] = attrs.field(factory=Counter)
    slowest_stop: float = 0.0

    def run(self) -> None:
        while self.left:
            self._start_and_stop()
            self.left -= 1

    def _start_and_stop(self) -> None:
        starts = self.place.log.count("worker started") if self.exit_codes else 0
        self.place.start()
        until(lambda: self.place.log.count("worker started") > starts)
        time.sleep(self.luck.uniform(0, 0.4))
        began = time.monotonic()
        self.exit_codes[self.place.stop(signal.SIGTERM)] += 1
        took = time.monotonic() - began
        self.slowest_stop = max(self.slowest_stop, took - self.job.grace)


def _fed_while_stopped(client: leaseq.Client, lines: list[_Line]) -> list[str]:
    """Run the lines, and see to it that they never run out of work; return what was stored."""
    over = threading.Event()
    ids: list[str] = []
    with ThreadPoolExecutor(len(lines)) as pool:
        running = [pool.submit(line.run) for line in lines]
        while not all(each.done() for each in running):
            if unfinished(client) < 300:
                # Turn by turn, so that a worker holds both kinds at any moment.
                for _ in range(20):
                    ids += stored(client, naps(10) + naps(4, seconds=_LONG))
            over.wait(0.1)
        for each in running:
            each.result()
    return ids


def _outcome(
    client: leaseq.Client, ids: list[str], lines: list[_Line], notebook: Notebook
) -> Outcome:
    tasks = list(all_tasks(client))
    assert {task.id for task in tasks} == set(ids)
    began, ended = notebook.said("began"), notebook.said("ended")
    charged: Counter[str] = Counter()
    for task in tasks:
        if task.attempts != 1:
            charged.update(error.type for error in client.get(task.id).errors)
    return Outcome(
        tasks=len(ids),
        statuses=Counter(task.status.value for task in tasks),
        charged=charged,
        run_twice=twice(ended),
        exit_codes=sum((line.exit_codes for line in lines), Counter()),
        slowest_stop=max(line.slowest_stop for line in lines),
        given_back=len(began) - len(ended),
    )
