"""Holds docs/guarantees.md to the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
STATEMENT = re.compile(r"^- (.+?)(?=^- |^#|\Z)", re.DOTALL | re.MULTILINE)
TEST = re.compile(r"^ +(?:async )?def (test_\w+)|^(?:async )?def (test_\w+)", re.MULTILINE)
NO_TEST_CAN_SHOW = "More than the database promises"


def statements() -> list[str]:
    return [found[1] for found in STATEMENT.finditer(PAGE)]


def existing_tests() -> set[str]:
    folders = [ROOT / "tests", ROOT / "src" / "testing"]
    sources = [path.read_text(encoding="utf-8") for each in folders for path in each.rglob("*.py")]
    return {found[1] or found[2] for source in sources for found in TEST.finditer(source)}


@pytest.mark.parametrize("statement", statements(), ids=lambda text: text.splitlines()[0])
def test_each_statement_names_tests_that_exist(statement: str) -> None:
    named = re.findall(r"`(test_\w+)`", statement)

    assert named or NO_TEST_CAN_SHOW in statement
    assert set(named) <= existing_tests()


def test_the_page_has_a_line_for_each_test_that_it_names() -> None:
    in_statements = sum(len(re.findall(r"`test_\w+`", text)) for text in statements())

    assert in_statements == PAGE.count("`test_")
