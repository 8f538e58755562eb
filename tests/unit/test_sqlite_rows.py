from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaseq.adapters.sqlite.rows import (
    COLUMNS,
    WHOLE,
    WITHOUT_PAYLOAD,
    Row,
    found,
    readable,
    row,
)
from leaseq.domain.storing import Found
from leaseq.domain.task import Task
from leaseq.testing import a_task
from leaseq.testing.conformance.round_trip import STORED_TASKS, without_payload

every_task = pytest.mark.parametrize("task", STORED_TASKS.values(), ids=STORED_TASKS.keys())

anything = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(), st.binary())
READ = WHOLE.split(", ")


@every_task
def test_a_task_comes_back_equal(task: Task) -> None:
    assert readable(_as_read(task, WHOLE)) == task
    assert readable(_as_read(task, WITHOUT_PAYLOAD)) == without_payload(task)


@given(st.tuples(st.binary(), *[anything] * (len(READ) - 1)))
def test_a_row_of_garbage_is_told_by_its_id(values: Row) -> None:
    told = found([values])

    assert told.tasks == ()
    assert [id_.encode(errors="surrogateescape") for id_ in told.unreadable] == [values[0]]


@given(st.sampled_from(list(STORED_TASKS.values())), st.sampled_from(READ[1:]), anything)
def test_one_value_of_garbage_never_raises(task: Task, column: str, garbage: object) -> None:
    values = list(_as_read(task, WHOLE))
    values[READ.index(column)] = garbage

    told = found([tuple(values)])

    assert len(told.tasks) + len(told.unreadable) == 1
    assert told.unreadable in {(), (task.id,)}


def test_what_can_be_read_keeps_its_order_around_what_cannot() -> None:
    first, last = a_task(), a_task()
    broken = (last.id.encode(), *[None] * (len(READ) - 1))

    told = found([_as_read(first, WHOLE), broken, _as_read(last, WHOLE)])

    assert told == Found(tasks=(first, last), unreadable=(last.id,))


def test_every_column_is_written() -> None:
    assert set(row(a_task())) == set(COLUMNS) == {*READ, "last_error"}


def _as_read(task: Task, columns: str) -> Row:
    """Return the row of a task as SQLite hands it over."""
    values = row(task)
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.text_factory = bytes
        named = ", ".join(f":{name} AS {name}" for name in COLUMNS)
        query = f"SELECT {columns} FROM (SELECT {named})"  # noqa: S608  names of our columns
        read: Row = connection.execute(query, values).fetchone()
    return read
