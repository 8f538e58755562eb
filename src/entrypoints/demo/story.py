"""What happens in the demo, and what is told of it."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import attrs
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn
from rich.table import Table
from rich.text import Text

from ...domain.requests import NewTask
from ...domain.task import Status
from ...domain.views import TaskView
from ..client import Client, connect
from ..new_tasks import new_task
from ..settings import HttpWish, ServerSettings
from ..urls import Address, SqliteUrl
from . import stage
from .sample import QUEUE

FILE: Final = Path("leaseq-demo.db")
_LOG: Final = Path("leaseq-demo.log")
_GREETINGS, _FLAKY, _HOPELESS = 340, 40, 20
_KILL_AFTER: Final = 0.4
"""Of all tasks."""

_PATIENCE_SECONDS: Final = 25.0
_ENDED: Final = (Status.SUCCEEDED, Status.FAILED, Status.DEAD, Status.CANCELLED)


class DemoFailedError(Exception):
    """Something did not happen as it should; the text says what."""


def run(console: Console) -> None:
    """
    Play the demo in the current folder.

    Raises:
        DemoFailedError: something did not happen as it should.
        StorageError: the folder cannot hold an SQLite file.
    """
    for leftover in (_LOG, *FILE.parent.glob(f"{FILE.name}*")):
        leftover.unlink(missing_ok=True)
    settings = ServerSettings(
        http=HttpWish(address=None),
        storage=SqliteUrl(path=FILE),
        grpc=Address(host="127.0.0.1", port=0),
        reaper_interval=timedelta(milliseconds=500),
        grace=timedelta(seconds=2),
    )
    with ExitStack() as stack:
        address = stack.enter_context(stage.server(settings))
        client = stack.enter_context(connect(f"grpc://{address}"))
        console.print(f"A server is up on {address}, its tasks are in {FILE}.")
        tasks = _tasks()
        client.enqueue_many(tasks)
        console.print(
            f"{len(tasks)} tasks are enqueued: {_GREETINGS} that work, {_FLAKY} flaky ones that"
            f" work the third time, {_HOPELESS} hopeless ones."
        )
        killed = _play(client, address, len(tasks), console, stack)
        _tell(list(_all_tasks(client)), killed, console)


def _tasks() -> list[NewTask]:
    kinds = [("greet", 5)] * _GREETINGS + [("flaky", 5)] * _FLAKY + [("hopeless", 2)] * _HOPELESS
    # Dealt like cards, so that every kind is met from the beginning.
    order = sorted(range(len(kinds)), key=lambda n: n * 7919 % len(kinds))
    return [
        new_task(
            kinds[n][0],
            {"name": f"{kinds[n][0]}-{n}@example.org"},
            queue=QUEUE,
            max_attempts=kinds[n][1],
            retry_base=0.1,
            retry_cap=0.5,
        )
        for n in order
    ]


def _play(client: Client, address: Address, total: int, console: Console, stack: ExitStack) -> int:
    """Let two workers work, kill one half-way, and return its process id."""
    victim, survivor = stage.Worker(address, _LOG), stage.Worker(address, _LOG)
    stack.callback(survivor.stop)
    stack.callback(victim.stop)
    console.print(f"Two workers work: processes {victim.number} and {survivor.number}.")
    with _progress(console, total) as show:
        _until(lambda: show(_depths(client)) >= _KILL_AFTER * total)
        victim.kill()
        console.print(
            f"[bold]kill -9 {victim.number}[/bold]: its tasks come back when their leases end."
        )
        _until(lambda: show(_depths(client)) >= total)
    return victim.number


def _until(done: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while not done():
        if time.monotonic() > give_up_at:
            raise DemoFailedError(
                f"the tasks were not done in {_PATIENCE_SECONDS:.0f} s; see {_LOG}"
            )
        time.sleep(0.1)


def _depths(client: Client) -> dict[Status, int]:
    [queue] = [queue for queue in client.list_queues() if queue.name == QUEUE]
    return {status: depth.count for status, depth in queue.depths.items()}


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[dict[Status, int]], int]]:
    with Progress(
        TextColumn("{task.description:<10}"), BarColumn(), MofNCompleteColumn(), console=console
    ) as progress:
        rows: dict[Status, TaskID] = {
            status: progress.add_task(status, total=total)
            for status in (Status.QUEUED, Status.LEASED, Status.SUCCEEDED, Status.DEAD)
        }

        def show(depths: dict[Status, int]) -> int:
            for status, row in rows.items():
                progress.update(row, completed=depths.get(status, 0))
            return sum(depths.get(status, 0) for status in _ENDED)

        yield show


def _all_tasks(client: Client) -> Iterator[TaskView]:
    cursor = ""
    while True:
        page = client.list_tasks(queue=QUEUE, size=1000, cursor=cursor)
        yield from page.tasks
        cursor = page.next_cursor
        if not cursor:
            return


@attrs.frozen
class _Outcome:
    """What became of the tasks."""

    succeeded: int
    retried: int
    rescued: int
    dead: int
    last_errors: tuple[str, ...]
    """Of the dead, one of each type."""

    @classmethod
    def of(cls, tasks: list[TaskView]) -> _Outcome:
        succeeded = [task for task in tasks if task.status is Status.SUCCEEDED]
        dead = [task for task in tasks if task.status is Status.DEAD]
        lost = [task for task in tasks if any(e.type == "LeaseExpired" for e in task.errors)]
        return cls(
            succeeded=len(succeeded),
            retried=sum(task.attempts > 1 for task in succeeded),
            rescued=len(lost),
            dead=len(dead),
            last_errors=tuple(
                {task.errors[-1].type: str(task.errors[-1]) for task in dead}.values()
            ),
        )


def _tell(tasks: list[TaskView], killed: int, console: Console) -> None:
    outcome = _Outcome.of(tasks)
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(str(outcome.succeeded), "succeeded")
    table.add_row(str(outcome.retried), "of them on a later attempt")
    table.add_row(str(outcome.rescued), f"taken over from process {killed}, which was killed")
    table.add_row(str(outcome.dead), "dead, all their attempts used; one said")
    for error in outcome.last_errors:
        table.add_row("", Text(error, style="red"))
    console.print()
    console.print(table)
    if outcome.succeeded != _GREETINGS + _FLAKY or outcome.dead != _HOPELESS:
        raise DemoFailedError(f"{_GREETINGS + _FLAKY} should have succeeded, and the rest be dead")
    leaseq = shlex.quote(sys.argv[0])
    console.print("\nNothing was lost. Try next, the first in a shell of its own:")
    for command in (
        f"server --storage sqlite:///{FILE}",
        "dead list",
        f"dead requeue --all --queue {QUEUE} --dry-run",
    ):
        console.print(f"  {leaseq} {command}", style="cyan", highlight=False, soft_wrap=True)
