"""Runs the commands of docs/http.md as they are printed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leaseq.adapters.http.enqueue_codec import _FIELDS
from leaseq_process import SOON, ServerProcess, leaseq_server

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(
    r"<!-- run -->\n```console\n(.*?)```\n\n<!-- prints -->\n```json\n(.*?)```", re.DOTALL
)
# What differs from run to run.
CHANGING = {"task_id", "run_after", "age_seconds"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with leaseq_server("--http", "127.0.0.1:0", cwd=tmp_path_factory.mktemp("server")) as started:
        yield started


def lasting(value: Any) -> Any:
    match value:
        case dict():
            return {
                key: type(inner).__name__ if key in CHANGING else lasting(inner)
                for key, inner in value.items()
            }
        case list():
            return [lasting(inner) for inner in value]
        case _:
            return value


def documents(text: str) -> list[Any]:
    return [lasting(json.loads(line)) for line in text.splitlines()]


def test_no_block_of_the_page_is_passed_over() -> None:
    assert 2 * len(EXAMPLE.findall(PAGE)) == PAGE.count("\n```") // 2


@pytest.mark.parametrize(("command", "printed"), EXAMPLE.findall(PAGE), ids=lambda text: text[:60])
def test_a_command_prints_what_the_page_says(
    server: ServerProcess, command: str, printed: str
) -> None:
    if shutil.which("curl") is None:
        pytest.skip("the page's commands need curl, which is not here")
    command = command.replace("localhost:7481", f"localhost:{server.http_port}")

    ran = subprocess.run(
        ["sh", "-euc", command], capture_output=True, text=True, check=True, timeout=SOON
    )

    assert documents(ran.stdout) == documents(printed)


def test_the_page_names_every_field() -> None:
    section = PAGE.partition("## `POST /enqueue`")[2].partition("Names are")[0]

    assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == set(_FIELDS)
