from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import leaseq
import leaseq.storage
from leaseq.domain import errors


def names_for_type_checkers() -> set[str]:
    tree = ast.parse(Path(leaseq.__file__).read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If)
        for node in branch.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_what_type_checkers_see_is_what_is_there() -> None:
    assert names_for_type_checkers() == set(leaseq.__all__)


@pytest.mark.parametrize("name", sorted(leaseq.__all__))
def test_every_public_name_can_be_used(name: str) -> None:
    assert getattr(leaseq, name).__name__ == name
    assert name in dir(leaseq)


def test_every_error_that_callers_can_meet_is_public() -> None:
    raised = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, errors.TaskQueueError)
    }

    assert raised <= set(leaseq.__all__)


@pytest.mark.parametrize("name", sorted(leaseq.storage.__all__))
def test_every_name_for_authors_of_storages_is_there_and_on_their_page(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "storages.md").read_text(encoding="utf-8")

    assert hasattr(leaseq.storage, name)
    assert re.search(rf"\b{name}\b", page)


@pytest.mark.parametrize(
    "function",
    [value for value in vars(leaseq.storage).values() if inspect.isfunction(value)],
    ids=lambda function: function.__name__,
)
def test_the_page_for_authors_of_storages_says_how_each_function_is_called(
    function: Callable[..., object],
) -> None:
    page = (Path(__file__).parents[2] / "docs" / "storages.md").read_text(encoding="utf-8")
    names = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        names.append(parameter.name)

    assert f"{function.__name__}({', '.join(names)})" in page


def test_nothing_else_is_there_for_authors_of_storages() -> None:
    names = {
        name
        for name, value in vars(leaseq.storage).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    }

    assert names - {"annotations"} == set(leaseq.storage.__all__)


def test_a_name_that_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Consumer'"):
        _ = leaseq.Consumer


@pytest.mark.parametrize(
    ("module", "too_heavy"),
    [
        ("leaseq", ["attr", "asyncio", "typer"]),
        ("leaseq.entrypoints.client", ["grpc", "dependency_injector", "typer", "rich", "sqlite3"]),
        # What a Ctrl-C may meet before anybody minds it.
        ("leaseq.entrypoints.cli.start", ["attr", "typer", "asyncio", "click"]),
        (
            "leaseq.entrypoints.cli.main",
            ["grpc", "dependency_injector", "rich", "structlog", "asyncio"],
        ),
    ],
)
def test_importing_does_not_load_what_may_not_be_needed(module: str, too_heavy: list[str]) -> None:
    program = f"import sys, {module}; print([name for name in {too_heavy} if name in sys.modules])"

    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )

    assert done.stdout.strip() == "[]"
