from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from leaseq.entrypoints.server import Addresses, start_line, tell_fitness
from leaseq.entrypoints.settings import DEFAULT_GRPC, ServerSettings
from leaseq.entrypoints.urls import Address, PostgresUrl, SqliteUrl


async def test_health_is_told_whenever_it_changes(caplog: pytest.LogCaptureFixture) -> None:
    reasons = iter([None, None, "the reaper is late", "the reaper is later", None, None])
    told: list[bool] = []
    over = asyncio.Event()

    async def tell(fit: bool) -> None:  # noqa: FBT001  as it is called
        told.append(fit)

    async def pause() -> None:
        if len(told) == 2:
            over.set()
            await asyncio.Event().wait()

    telling = asyncio.create_task(tell_fitness(lambda: next(reasons), tell=tell, pause=pause))
    await over.wait()
    telling.cancel()

    assert told == [False, True]
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == [
        "unfit to serve"
    ]


@pytest.mark.parametrize(
    ("address", "hint"),
    [
        (DEFAULT_GRPC, "try: leaseq enqueue --type"),
        (Address(host="127.0.0.1", port=99), "try: leaseq enqueue --server 127.0.0.1:99 --type"),
        (Address(host="0.0.0.0", port=7480), "try: leaseq enqueue --type"),  # noqa: S104
        (Address(host="::", port=1), "try: leaseq enqueue --server [::1]:1 --type"),
    ],
    ids=str,
)
def test_the_start_line_says_what_to_try_next(address: Address, hint: str) -> None:
    settings = ServerSettings(storage=SqliteUrl(path=Path("tasks.db")))

    line = start_line(settings, Addresses(grpc=address))

    assert f"gRPC on {address}, its tasks are in sqlite:///tasks.db; {hint}" in line
    assert "\n" not in line


def test_the_start_line_hides_a_password() -> None:
    settings = ServerSettings(storage=PostgresUrl(dsn="postgresql://u:hunter2@h/db"))

    line = start_line(settings, Addresses(grpc=DEFAULT_GRPC))

    assert "postgresql://u:***@h/db" in line


def test_the_start_line_names_the_address_of_http() -> None:
    addresses = Addresses(grpc=DEFAULT_GRPC, http=Address(host="127.0.0.1", port=7))

    line = start_line(ServerSettings(), addresses)

    assert "gRPC on 127.0.0.1:7480, HTTP on 127.0.0.1:7, its tasks" in line
