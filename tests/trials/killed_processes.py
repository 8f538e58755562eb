"""Servers and workers that are killed under load, again and again."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import attrs

import leaseq
from trials.places import Job, Notebook, ServerPlace, WorkerPlace
from trials.tasks import FINISHED, all_tasks, unfinished, until

_WORKERS_AT_EACH_SERVER = 2
_SERVERS_SHARE = 0.4
_AT_ONCE = timedelta(milliseconds=10)


@attrs.frozen(kw_only=True)
class Outcome:
    """What the kills left behind."""

    acknowledged: int
    lost: set[str]
    statuses: Counter[str]
    server_kills: int
    worker_kills: int
    attempts: Counter[int]
    errors: Counter[str]
    never_ran_to_the_end: set[str]
    slowest_recovery: float
    """Seconds from a server's kill until a handler anywhere ended its work."""

    drained_after: float
    """Seconds from the last kill until every task had ended."""


@attrs.define
class _Producer:
    """Stores tasks at two servers by turns, and repeats what was not acknowledged."""

    urls: tuple[str, ...]
    luck: random.Random
    over: threading.Event = attrs.field(factory=threading.Event)
    acknowledged: set[str] = attrs.field(factory=set)

    def run(self) -> None:
        with ExitStack() as stack:
            clients = [stack.enter_context(leaseq.connect(url)) for url in self.urls]
            number = 0
            while not self.over.wait(0.1):
                number += 1
                self._enqueue(clients, number)

    def _enqueue(self, clients: list[leaseq.Client], number: int) -> None:
        tasks = [
            leaseq.NewTask(
                type="nap",
                queue="work",
                payload=f'{{"seconds": {self.luck.choice([0, 0.05, 0.3])}}}',
                idempotency_key=f"{number}-{nth}",
                max_attempts=1000,
                retry_base=_AT_ONCE,
                retry_cap=_AT_ONCE,
            )
            for nth in range(6)
        ]
        for attempt in range(1000):
            try:
                answers = clients[(number + attempt) % len(clients)].enqueue_many(tasks)
            except leaseq.StorageUnavailableError:
                continue
            got = [each.task.id for each in answers if isinstance(each, leaseq.Enqueued)]
            if len(got) == len(tasks):
                self.acknowledged.update(got)
                return
            time.sleep(0.1)
        raise AssertionError(f"batch {number} was never acknowledged")


def kill_processes(
    storage: str,
    folder: Path,
    *,
    seconds: float,
    luck: random.Random,
    kill_servers: bool = True,
    kill_workers: bool = True,
) -> Outcome:
    """Kill one process after another for so long, then let the rest work to the end."""
    notebook = Notebook(path=folder / "notes")
    with ExitStack() as stack:
        servers = [ServerPlace(stack, storage, folder) for _ in range(2)]
        for server in servers:
            assert server.process.start_line, server.process.log
        workers = [
            WorkerPlace(
                stack,
                Job(url=server.url, notebook=notebook, lease=1.5),
                folder / f"worker-{place}-{nth}.log",
            )
            for place, server in enumerate(servers)
            for nth in range(_WORKERS_AT_EACH_SERVER)
        ]
        for worker in workers:
            worker.start()
        until(lambda: all("worker started" in worker.log for worker in workers))
        producer = _Producer(tuple(server.url for server in servers), luck)
        killer = _Killer(servers, workers, notebook, luck)
        with ThreadPoolExecutor(1) as pool:
            producing = pool.submit(producer.run)
            try:
                killer.run(seconds, producing, kill_servers=kill_servers, kill_workers=kill_workers)
            finally:
                producer.over.set()
            producing.result()
        with leaseq.connect(servers[0].url) as client:
            killed_at = time.monotonic()
            until(lambda: unfinished(client) == 0, seconds=120)
            return _outcome(client, producer, killer, time.monotonic() - killed_at)


@attrs.define
class _Killer:
    servers: list[ServerPlace]
    workers: list[WorkerPlace]
    notebook: Notebook
    luck: random.Random
    server_kills: int = 0
    worker_kills: int = 0
    slowest_recovery: float = 0.0

    def run(
        self, seconds: float, producing: Future[None], *, kill_servers: bool, kill_workers: bool
    ) -> None:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at and not producing.done():
            time.sleep(self.luck.uniform(0.2, 2))
            if kill_servers and (not kill_workers or self.luck.random() < _SERVERS_SHARE):
                self._kill_server()
            else:
                self._kill_worker()

    def _kill_server(self) -> None:
        server = self.luck.choice(self.servers)
        server.kill()
        killed_at = time.monotonic()
        said = self.notebook.size()
        until(lambda: self.notebook.size() > said)
        self.slowest_recovery = max(self.slowest_recovery, time.monotonic() - killed_at)
        time.sleep(self.luck.uniform(0, 3))
        server.start()
        self.server_kills += 1

    def _kill_worker(self) -> None:
        worker = self.luck.choice(self.workers)
        worker.stop(signal.SIGKILL)
        time.sleep(self.luck.uniform(0, 0.5))
        worker.start()
        self.worker_kills += 1


def _outcome(
    client: leaseq.Client, producer: _Producer, killer: _Killer, drained_after: float
) -> Outcome:
    tasks = list(all_tasks(client))
    ended = set(killer.notebook.said("ended"))
    retried = [task.id for task in tasks if task.attempts > 1]
    errors = Counter(error.type for task_id in retried for error in client.get(task_id).errors)
    ids: set[str] = {task.id for task in tasks}
    finished: set[str] = {task.id for task in tasks if task.status in FINISHED}
    return Outcome(
        acknowledged=len(producer.acknowledged),
        lost=producer.acknowledged ^ ids,
        statuses=Counter(task.status.value for task in tasks),
        server_kills=killer.server_kills,
        worker_kills=killer.worker_kills,
        attempts=Counter(task.attempts for task in tasks),
        errors=errors,
        never_ran_to_the_end=finished - ended,
        slowest_recovery=killer.slowest_recovery,
        drained_after=drained_after,
    )
