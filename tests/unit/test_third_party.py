from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

import leaseq
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.ports import Storage
from leaseq.entrypoints.urls import SqliteUrl, ThirdPartyUrl, parse_storage_url, parse_url

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
        f"sqlite = {__name__}:open_storage\n"
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


@pytest.mark.parametrize(
    "use",
    [
        leaseq.connect,
        lambda url: asyncio.run(leaseq.connect_async(url).__aenter__()),
        leaseq.Worker,
        parse_url,
        parse_storage_url,
    ],
    ids=["connect", "connect_async", "Worker", "a client command", "the server"],
)
def test_a_scheme_that_nobody_registered_is_answered_with_the_known_ones(
    use: Callable[[str], object],
) -> None:
    with pytest.raises(leaseq.InvalidArgumentError) as refusal:
        use("warmer://host")

    assert "'warmer://host' is none of sqlite:///FILE, postgresql://" in str(refusal.value)
    assert str(refusal.value).endswith(", broken://..., colder://...")


def test_a_server_is_not_offered_where_a_storage_is_wanted() -> None:
    with pytest.raises(leaseq.InvalidArgumentError) as refusal:
        parse_storage_url("warmer://host")

    assert "grpc://" not in str(refusal.value)


def test_our_own_schemes_cannot_be_taken() -> None:
    assert parse_url("sqlite:///tasks.db") == SqliteUrl(path=Path("tasks.db"))


def test_a_scheme_that_two_packages_claim_is_refused(tmp_path: Path) -> None:
    package = tmp_path / "rival-1.0.dist-info"
    package.mkdir()
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: rival\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[leaseq.storages]\ncolder = rival:open\n")

    with pytest.raises(leaseq.StorageError, match=r"claimed by rival:open and .*:open_storage"):
        leaseq.connect("colder://host")
