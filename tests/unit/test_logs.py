from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from leaseq.domain.errors import StorageError
from leaseq.entrypoints.logs import NowAndThen, formatter


def record(message: str, *, error: BaseException | None = None, **extra: Any) -> logging.LogRecord:
    exc_info = (type(error), error, error.__traceback__) if error else None
    made = logging.LogRecord("leaseq.x", logging.WARNING, __file__, 1, message, (), exc_info)
    vars(made).update(extra)
    return made


def raised() -> StorageError:
    try:
        read_row()
    except StorageError as error:
        return error
    raise AssertionError("nothing was raised")


def read_row() -> None:
    try:
        int("secret payload")
    except ValueError as error:
        raise StorageError("the row was refused") from error


def test_json_holds_message_time_level_and_extra() -> None:
    line = formatter("json", on_terminal=True).format(record("pass failed", loop="reaper"))

    logged = json.loads(line)
    assert logged.pop("timestamp").endswith("Z")
    assert logged == {
        "event": "pass failed",
        "level": "warning",
        "logger": "leaseq.x",
        "loop": "reaper",
    }


@pytest.mark.parametrize(("on_terminal", "is_json"), [(True, False), (False, True)])
def test_people_get_text_and_collectors_get_json(*, on_terminal: bool, is_json: bool) -> None:
    line = formatter("auto", on_terminal=on_terminal).format(record("stopped"))

    assert line.startswith("{") == is_json
    assert "stopped" in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_nobody_can_forge_a_line_or_move_the_cursor(form: Any) -> None:
    line = formatter(form, on_terminal=False).format(
        record("refused: a\nERROR forged", queue="q\r\n\x1b[2J")
    )

    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line


@pytest.mark.parametrize("form", ["text", "json"])
def test_words_of_others_exceptions_are_left_out(form: Any) -> None:
    line = formatter(form, on_terminal=False).format(record("failed", error=raised()))

    assert "StorageError: the row was refused" in line
    assert "ValueError" in line
    assert "test_logs.py" in line
    assert "secret payload" not in line
    assert "\n" not in line


def test_an_exception_without_traceback_is_logged_by_name() -> None:
    line = formatter("json", on_terminal=False).format(record("failed", error=KeyError("secret")))

    assert json.loads(line)["raised"] == ["KeyError"]


def test_exceptions_that_cause_each_other_are_each_logged_once() -> None:
    first, second = RuntimeError(), LookupError()
    first.__cause__, second.__cause__ = second, first

    line = formatter("json", on_terminal=False).format(record("failed", error=first))

    assert json.loads(line)["raised"] == ["RuntimeError", "LookupError"]


def test_a_message_is_let_through_again_after_a_while_whatever_its_arguments() -> None:
    let_through = NowAndThen(seconds=10)

    seen = [
        let_through.filter(at(second, "cannot connect: %s")) for second in (0, 1, 9.9, 10, 11, 20)
    ]

    assert seen == [True, False, False, True, False, True]


def test_a_message_is_not_held_back_by_another_nor_by_a_clock_that_was_set_back() -> None:
    let_through = NowAndThen(seconds=10)

    seen = [
        let_through.filter(at(second, message))
        for second, message in ((50, "one"), (51, "two"), (20, "one"))
    ]

    assert seen == [True, True, True]


def at(second: float, message: str) -> logging.LogRecord:
    made = record(message)
    made.created = second
    return made


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize(
    "dsn",
    ["host=h password=hunter2 user=u", "host=h password='hunter2'", "postgresql://u:hunter2@h/db"],
)
def test_what_the_driver_says_is_logged_without_passwords(dsn: str, form: Any) -> None:
    said = record(f"error connecting in 'leaseq': {dsn} is bad")
    said.name = "psycopg.pool"

    line = formatter(form, on_terminal=False).format(said)

    assert "hunter2" not in line
    assert "error connecting" in line
