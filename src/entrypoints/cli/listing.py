"""Lists of tasks, page by page."""

from __future__ import annotations

from collections.abc import Iterator

from ...domain.limits import MAX_BATCH
from ...domain.ports import TaskAdmin
from ...domain.requests import PageRequest, TaskFilter
from ...domain.views import TaskPage, TaskView
from ..connection import run_blocking
from .task_text import TASK_COLUMNS, task_row, tasks_json
from .terminal import note, print_table, say


def all_ids(admin: TaskAdmin, wanted: TaskFilter) -> list[str]:
    """Return the ids of all tasks that `wanted` covers, newest first."""
    return [task.id for page in _pages(admin, wanted) for task in page.tasks]


def print_tasks(
    admin: TaskAdmin, wanted: TaskFilter, *, limit: int, cursor: str, as_json: bool
) -> None:
    """Print up to `limit` tasks, and how to see more."""
    tasks: list[TaskView] = []
    next_cursor = ""
    for page in _pages(admin, wanted, limit=limit, cursor=cursor):
        tasks += page.tasks
        next_cursor = page.next_cursor
    if as_json:
        say(tasks_json(tasks, next_cursor=next_cursor))
        return
    print_table(TASK_COLUMNS, [task_row(task) for task in tasks])
    if next_cursor:
        note(f"there are more: --cursor {next_cursor}")


def _pages(
    admin: TaskAdmin, wanted: TaskFilter, *, limit: int | None = None, cursor: str = ""
) -> Iterator[TaskPage]:
    seen = 0
    while limit is None or seen < limit:
        size = MAX_BATCH if limit is None else min(limit - seen, MAX_BATCH)
        page = run_blocking(admin.list_tasks(wanted, PageRequest(size=size, cursor=cursor)))
        yield page
        seen += len(page.tasks)
        cursor = page.next_cursor
        if not cursor:
            return
