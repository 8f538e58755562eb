"""What trials store, and how they look at what became of it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import leaseq
from leaseq.domain.limits import MAX_BATCH

QUEUE = "work"
FINISHED = ("succeeded", "failed", "dead", "cancelled")


def naps(count: int, *, seconds: float = 0, **options: object) -> list[leaseq.NewTask]:
    """Return so many tasks that take so long."""
    payload = json.dumps({"seconds": seconds})
    task = leaseq.NewTask(type="nap", queue=QUEUE, payload=payload, **options)  # type: ignore[arg-type]
    return [task] * count


def stored(client: leaseq.Client, tasks: Sequence[leaseq.NewTask]) -> list[str]:
    """Store tasks, and return their ids."""
    answers = client.enqueue_many(tasks)
    ids: list[str] = [answer.task.id for answer in answers if isinstance(answer, leaseq.Enqueued)]
    assert len(ids) == len(tasks), answers
    return ids


def all_tasks(client: leaseq.Client) -> Iterator[leaseq.TaskView]:
    """Return every task of the queue."""
    cursor = ""
    while True:
        page = client.list_tasks(queue=QUEUE, size=MAX_BATCH, cursor=cursor)
        yield from page.tasks
        cursor = page.next_cursor
        if not cursor:
            return


def depths(client: leaseq.Client) -> Counter[str]:
    """Return how many tasks of the queue have which status (large numbers are cut)."""
    counts: Counter[str] = Counter()
    for queue in client.list_queues():
        if queue.name == QUEUE:
            counts.update({status.value: depth.count for status, depth in queue.depths.items()})
    return counts


def unfinished(client: leaseq.Client) -> int:
    counts = depths(client)
    return counts["queued"] + counts["leased"]


def until(done: Callable[[], bool], *, seconds: float = 30.0) -> None:
    """Look again and again, since what is waited for happens in other processes."""
    give_up_at = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < give_up_at, "it did not happen in time"
        time.sleep(0.02)
