from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings

from leaseq.adapters.memory import MemoryStorage
from leaseq.adapters.postgres import open_postgres
from leaseq.adapters.sqlite import open_sqlite
from leaseq.domain.ports import Storage
from leaseq.testing.model import play

# Finding nothing takes minutes; finding something takes as long again, for the shortest course.
pytestmark = pytest.mark.timeout(3600)

ON_FILES = settings(max_examples=600, stateful_step_count=100, deadline=None)
ON_SERVERS = settings(max_examples=150, stateful_step_count=60, deadline=None)


async def test_long_courses_on_memory_and_sqlite_do_what_the_model_does(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "tasks.db") as sqlite:
        await play({"memory": MemoryStorage(), "sqlite": sqlite}, settings=ON_FILES)


async def test_long_courses_on_all_storages_do_what_the_model_does(
    tmp_path: Path, postgres_url: str, postgres_schema: str
) -> None:
    async with (
        open_sqlite(tmp_path / "tasks.db") as sqlite,
        open_postgres(postgres_url, schema=postgres_schema) as postgres,
    ):
        storages: dict[str, Storage] = {
            "memory": MemoryStorage(),
            "sqlite": sqlite,
            "postgres": postgres,
        }
        await play(storages, settings=ON_SERVERS)
