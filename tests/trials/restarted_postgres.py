"""A database that is restarted, or away for a while, beneath a server and its workers."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs

import leaseq
from leaseq_process import SOON
from postgres_provider.wheel import Cluster, cluster_from_wheel, free_port
from trials.places import Job, Notebook, ServerPlace, WorkerPlace
from trials.tasks import all_tasks, naps, stored, unfinished, until

FAST = signal.SIGINT
"""Sessions are ended and everything is written, as by `pg_ctl stop -m fast`."""

IMMEDIATE = signal.SIGQUIT
"""Everything is dropped, and recovered at the next start, as by `pg_ctl stop -m immediate`."""

_A_SECOND_OF_PROCESSOR: float = os.sysconf("SC_CLK_TCK")


@attrs.frozen(kw_only=True)
class Outage:
    """How a server bore one outage."""

    seconds: float
    processor_share: float
    log_lines_per_second: float
    back_after: float
    """Seconds from the return of the database until a new task was stored and done."""


@attrs.frozen(kw_only=True)
class Outcome:
    """What the outages left behind."""

    outages: list[Outage]
    acknowledged: int
    lost: set[str]
    statuses: Counter[str]
    run_to_the_end: int
    log: str


class _Postgres:
    """A cluster that can be stopped and started at one port."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._port = free_port()
        self._serving = ExitStack()
        self.url = ""

    def start(self) -> None:
        self.url = self._serving.enter_context(self._cluster.served(self._port))

    def stop(self, mode: signal.Signals) -> None:
        note = self._cluster.folder / "data" / "postmaster.pid"
        pid = int(note.read_text().split()[0])
        os.kill(pid, mode)
        # Of an immediate stop the note is left behind; so we look at the process.
        until(lambda: not Path(f"/proc/{pid}").exists())
        self._serving.close()


@contextmanager
def _own_postgres() -> Iterator[_Postgres]:
    with cluster_from_wheel() as cluster:
        postgres = _Postgres(cluster)
        postgres.start()
        try:
            yield postgres
        finally:
            postgres.stop(FAST)


def outlive_outages(folder: Path, outages: list[tuple[signal.Signals, float]]) -> Outcome:
    """Stop the database in each of these ways for so many seconds, with two workers at work."""
    notebook = Notebook(path=folder / "notes")
    with ExitStack() as stack:
        postgres = stack.enter_context(_own_postgres())
        server = ServerPlace(stack, postgres.url, folder)
        assert server.process.start_line, server.process.log
        workers = [
            WorkerPlace(stack, Job(url=server.url, notebook=notebook), folder / f"worker-{nth}.log")
            for nth in range(2)
        ]
        for worker in workers:
            worker.start()
        client = stack.enter_context(leaseq.connect(server.url))
        ids: list[str] = []
        borne = []
        for mode, seconds in outages:
            # Some run when the database goes, others wait.
            ids += stored(client, naps(30, seconds=0.2))
            borne.append(_bear(server, client, postgres, mode, seconds, ids))
        until(lambda: unfinished(client) == 0, seconds=60)
        tasks = list(all_tasks(client))
        return Outcome(
            outages=borne,
            acknowledged=len(ids),
            lost=set(ids) - {task.id for task in tasks},
            statuses=Counter(task.status.value for task in tasks),
            run_to_the_end=len(set(notebook.said("ended"))),
            log=server.process.log,
        )


def _bear(
    server: ServerPlace,
    client: leaseq.Client,
    postgres: _Postgres,
    mode: signal.Signals,
    seconds: float,
    ids: list[str],
) -> Outage:
    process = server.process
    postgres.stop(mode)
    began, worked, lines = (
        time.monotonic(),
        _processor_seconds(process.pid),
        process.log.count("\n"),
    )
    time.sleep(seconds)
    worked = _processor_seconds(process.pid) - worked
    lines = process.log.count("\n") - lines
    lasted = time.monotonic() - began
    postgres.start()
    back_at = time.monotonic()
    ids.append(_done_again(client))
    return Outage(
        seconds=lasted,
        processor_share=worked / lasted if lasted > 1 else 0.0,
        log_lines_per_second=lines / lasted if lasted > 1 else 0.0,
        back_after=time.monotonic() - back_at,
    )


def _done_again(client: leaseq.Client) -> str:
    give_up_at = time.monotonic() + SOON
    key = str(give_up_at)
    while True:
        try:
            task = client.enqueue("nap", queue="work", priority=9, idempotency_key=key).task
            if task.status == "succeeded":
                return task.id
        except leaseq.StorageUnavailableError:
            pass
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


def _processor_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _A_SECOND_OF_PROCESSOR
