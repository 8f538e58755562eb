"""Lists of tasks, page by page, printed while they are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

import attrs
import typer

from ...adapters.task_json import task_json
from ...domain.limits import MAX_BATCH
from ...domain.ports import TaskAdmin
from ...domain.requests import PageRequest
from ...domain.views import TaskPage
from ..connection import run_blocking
from .choosing import Wanted
from .progress import ProgressLine
from .task_text import TASK_COLUMNS, task_row
from .terminal import note, print_table, put, say

DEFAULT_LIMIT: Final = 50


@attrs.frozen(kw_only=True)
class Stretch:
    """Which part of a list to print."""

    limit: int | None
    """None: to the end."""

    cursor: str


def stretch(*, limit: int | None, cursor: str, everything: bool) -> Stretch:
    """
    Return the part of a list that the options of a command ask for.

    Raises:
        typer.BadParameter: they do not go together.
    """
    if everything and limit is not None:
        raise typer.BadParameter("give --limit, or --all, not both", param_hint="--limit")
    return Stretch(limit=None if everything else limit or DEFAULT_LIMIT, cursor=cursor)


def all_ids(admin: TaskAdmin, wanted: Wanted) -> list[str]:
    """Return the ids of all tasks that `wanted` covers, newest first."""
    everything = Stretch(limit=None, cursor="")
    with ProgressLine("looked at") as line:
        pages = _pages(admin, wanted, everything, line)
        return [task.id for page in pages for task in page.tasks]


def print_tasks(admin: TaskAdmin, wanted: Wanted, part: Stretch, *, as_json: bool) -> None:
    """Print tasks, and how to see more."""
    with ProgressLine("looked at") as line:
        pages = _hiding(line, _pages(admin, wanted, part, line))
        next_cursor = _print_json(pages) if as_json else _print_tables(pages)
    if next_cursor and not as_json:
        note(f"there are more: --cursor {next_cursor}")


def _pages(
    admin: TaskAdmin, wanted: Wanted, part: Stretch, line: ProgressLine
) -> Iterator[TaskPage]:
    """Yield pages that have tasks, and a last one."""
    left, cursor = part.limit, part.cursor
    while True:
        # What we compare ourselves may be rare, so a page is then as large as can be.
        size = MAX_BATCH if left is None or wanted.error else min(left, MAX_BATCH)
        page = run_blocking(admin.list_tasks(wanted.where, PageRequest(size=size, cursor=cursor)))
        line.advance(len(page.tasks))
        found = _narrowed(page, wanted, left)
        cursor = found.next_cursor
        left = None if left is None else left - len(found.tasks)
        is_last = not cursor or left == 0
        if found.tasks or is_last:
            yield found
        if is_last:
            return


def _narrowed(page: TaskPage, wanted: Wanted, left: int | None) -> TaskPage:
    tasks = [task for task in page.tasks if wanted.covers(task)][:left]
    cut = tasks and len(tasks) == left and tasks[-1].id != page.tasks[-1].id
    # The rest of the page was not told, so a list that goes on must begin there.
    return TaskPage(tasks=tuple(tasks), next_cursor=tasks[-1].id if cut else page.next_cursor)


def _hiding(line: ProgressLine, pages: Iterable[TaskPage]) -> Iterator[TaskPage]:
    for page in pages:
        line.hide()
        yield page


def _print_tables(pages: Iterable[TaskPage]) -> str:
    next_cursor = ""
    begun = False
    for page in pages:
        next_cursor = page.next_cursor
        rows = [task_row(task) for task in page.tasks]
        if rows or not begun:
            print_table(TASK_COLUMNS, rows, header=not begun)
        begun = True
    return next_cursor


def _print_json(pages: Iterable[TaskPage]) -> str:
    next_cursor = ""
    opening = '{"tasks": ['
    separator = opening
    for page in pages:
        next_cursor = page.next_cursor
        for task in page.tasks:
            put(separator + task_json(task))
            separator = ", "
    rest = opening if separator is opening else ""
    say(f'{rest}], "next_cursor": {json.dumps(next_cursor)}}}')
    return next_cursor
