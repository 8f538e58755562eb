from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from leaseq.adapters.sqlite import open_sqlite
from leaseq.adapters.sqlite.file import prepare
from leaseq.adapters.sqlite.migrate_file import migrate_file
from leaseq.domain.errors import StorageError
from leaseq.domain.storing import Added, Selection
from leaseq.testing import a_task

NOBODY: Final = 65534


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
async def test_a_new_file_and_those_beside_it_are_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        async with open_sqlite(tmp_path / "tasks.db") as storage:
            await storage.tasks.add([a_task()])

            modes = _modes(tmp_path)
    finally:
        os.umask(before)

    assert modes == {"tasks.db": 0o600, "tasks.db-wal": 0o600, "tasks.db-shm": 0o600}


async def test_a_file_that_exists_keeps_its_mode(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    path.touch(0o640)
    path.chmod(0o640)

    async with open_sqlite(path):
        pass

    assert _mode(path) == 0o640


async def test_only_the_file_is_left_after_closing(tmp_path: Path) -> None:
    async with open_sqlite(tmp_path / "tasks.db") as storage:
        await storage.tasks.add([a_task()])
        await storage.tasks.search(Selection(), limit=1, with_payload=False)

    assert list(_modes(tmp_path)) == ["tasks.db"]


async def test_a_relative_path_is_that_of_the_folder_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(tmp_path)

    async with open_sqlite("tasks.db") as storage:
        monkeypatch.chdir(elsewhere)
        await storage.tasks.search(Selection(), limit=1, with_payload=False)
        await storage.tend()

    assert (tmp_path / "tasks.db").exists()


@pytest.mark.parametrize(
    "name",
    [
        "a b.db",
        "50%.db",
        "%41.db",
        "what?mode=memory",
        "#1.db",
        "file:x.db",
        "ünï.db",
        "a\udcff.db",
    ],
)
async def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    task = a_task()
    async with open_sqlite(tmp_path / name) as storage:
        assert await storage.tasks.add([task]) == [Added.STORED]

    assert list(_modes(tmp_path)) == [name]


@pytest.mark.parametrize("name", ["", ":memory:"])
def test_what_is_no_file_is_refused(name: str) -> None:
    with pytest.raises(StorageError, match="name a file"):
        prepare(name)


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    await _is_refused(tmp_path, "it is a folder")


async def test_a_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    await _is_refused(tmp_path / "nowhere" / "tasks.db", "its folder does not exist")


async def test_a_file_in_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    await _is_refused(tmp_path / "file" / "tasks.db", "Not a directory")


async def test_a_pipe_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    await _is_refused(tmp_path / "pipe", "no regular file")


async def test_a_name_that_no_file_may_have_is_refused(tmp_path: Path) -> None:
    await _is_refused(tmp_path / "a\0b", "no file name may hold")
    await _is_refused(tmp_path / ("x" * 300), "too long")


async def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Not a database, and worth keeping. " * 1000)
    before = path.read_bytes()

    await _is_refused(path, "damaged, or none")
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
async def test_the_database_of_another_program_is_refused_and_left_as_it_was(
    tmp_path: Path, journal: str
) -> None:
    path = tmp_path / "theirs.db"
    with closing(sqlite3.connect(path)) as theirs:
        theirs.execute(f"PRAGMA journal_mode = {journal}")
        for name in ("songs", "albums", "bands", "years"):
            theirs.execute(f"CREATE TABLE {name} (id)")
        theirs.commit()
    before = path.read_bytes()

    await _is_refused(path, "another program's database: it holds 'songs', .* and 1 more")
    with pytest.raises(StorageError, match="another program's database"):
        migrate_file(path)

    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o000, 0o400, 0o200], ids=["neither", "read only", "write only"])
async def test_a_file_that_may_not_be_used_is_refused(unprivileged: Path, mode: int) -> None:
    path = unprivileged / "tasks.db"
    path.touch()
    path.chmod(mode)

    await _is_refused(path, "may not read and write it")


async def test_a_folder_that_takes_no_files_is_refused(unprivileged: Path) -> None:
    path = unprivileged / "tasks.db"
    path.touch()
    os.chmod(unprivileged, 0o500)  # noqa: PTH101  the method is for other places

    await _is_refused(path, "may not make files beside it")
    await _is_refused(unprivileged / "new.db", "Permission denied")


async def test_damage_is_told_as_an_error_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"
    async with open_sqlite(path) as storage:
        await storage.tasks.add([a_task(payload=f'{{"text": "{"x" * 2000}"}}') for _ in range(500)])
    _overwrite_from_half_way(path)

    async with open_sqlite(path) as storage:
        for _ in range(2):
            with pytest.raises(StorageError, match="damaged"):
                await storage.tasks.search(Selection(), limit=1000, with_payload=True)
            with pytest.raises(StorageError, match="damaged"):
                await storage.tasks.add([a_task() for _ in range(1000)])


@pytest.mark.parametrize("fate", ["moved", "removed", "replaced"])
async def test_a_file_that_was_taken_away_is_noticed(tmp_path: Path, fate: str) -> None:
    path = tmp_path / "tasks.db"
    async with open_sqlite(path) as storage:
        await storage.tend()
        path.rename(tmp_path / "aside.db")
        if fate == "removed":
            (tmp_path / "aside.db").unlink()
        if fate == "replaced":
            path.touch()

        with pytest.raises(StorageError, match="moved, removed or replaced"):
            await storage.tend()


async def test_a_file_is_migrated_once_and_can_then_be_opened(tmp_path: Path) -> None:
    path = tmp_path / "tasks.db"

    applied = migrate_file(path)
    again = migrate_file(path)

    assert applied[0] == "0001_create_tasks"
    assert again == []
    assert _mode(path) == 0o600
    async with open_sqlite(path) as storage:
        assert await storage.tasks.add([a_task()]) == [Added.STORED]


def test_what_is_no_database_is_not_migrated(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Not a database. " * 1000)

    with pytest.raises(StorageError, match="not a database"):
        migrate_file(path)
    with pytest.raises(StorageError, match="it is a folder"):
        migrate_file(tmp_path)


async def _is_refused(path: Path, why: str) -> None:
    with pytest.raises(StorageError, match=why):
        async with open_sqlite(path):
            pass


def _overwrite_from_half_way(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xa5" * (size - size // 2))


def _modes(folder: Path) -> dict[str, int]:
    return {file.name: _mode(file) for file in folder.iterdir()}


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def unprivileged() -> Iterator[Path]:
    """Be somebody whom modes of files concern, with a folder of their own."""
    folder = Path(tempfile.mkdtemp(prefix="leaseq-"))
    was_root = os.geteuid() == 0
    if was_root:
        os.chown(folder, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        folder.chmod(0o700)
        shutil.rmtree(folder)
