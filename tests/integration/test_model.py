from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from leaseq.adapters.memory import MemoryStorage
from leaseq.adapters.postgres import open_postgres
from leaseq.adapters.sqlite import open_sqlite
from leaseq.testing.model import play

# Seconds, unless something is found: then hypothesis looks for the shortest course to it.
pytestmark = pytest.mark.timeout(400)

MANY = settings(max_examples=30, stateful_step_count=40, deadline=None)
FEW = settings(max_examples=8, stateful_step_count=30, deadline=None)


async def test_memory_and_sqlite_do_what_the_model_does(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "tasks.db") as sqlite:
        await play({"memory": MemoryStorage(), "sqlite": sqlite}, settings=MANY)


async def test_postgres_does_what_the_model_does(postgres_url: str, postgres_schema: str) -> None:
    async with open_postgres(postgres_url, schema=postgres_schema) as postgres:
        await play({"memory": MemoryStorage(), "postgres": postgres}, settings=FEW)
