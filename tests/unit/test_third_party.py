from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import leaseq
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.ports import Storage
from leaseq.entrypoints.urls import ThirdPartyUrl, parse_url

opened: list[str] = []


@asynccontextmanager
async def open_storage(url: str) -> AsyncIterator[Storage]:
    opened.append(url)
    yield MemoryStorage()


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package with two storages, one of which cannot be imported."""
    opened.clear()
    package = tmp_path / "colder-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: colder\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        f"[leaseq.storages]\ncolder = {__name__}:open_storage\nbroken = no_such_module:open\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


def test_a_storage_of_another_package_is_used_like_ours() -> None:
    with leaseq.connect("colder://u:secret@host/x") as client:
        enqueued = client.enqueue("t")

    assert enqueued.created
    assert opened == ["colder://u:secret@host/x"]


def test_its_url_shows_no_password() -> None:
    url = parse_url("Colder://u:secret@host/x")

    assert isinstance(url, ThirdPartyUrl)
    assert str(url) == "Colder://u:***@host/x"
    assert "secret" not in repr(url)


def test_a_storage_that_cannot_be_imported_is_named() -> None:
    with pytest.raises(leaseq.StorageError, match="no_such_module"):
        leaseq.connect("broken://host")


def test_a_scheme_that_nobody_registered_is_refused() -> None:
    with pytest.raises(leaseq.InvalidArgumentError, match="is none of"):
        leaseq.connect("warmer://host")
