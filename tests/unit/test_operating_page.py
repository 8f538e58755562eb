"""The page on operating tells numbers that the code decides."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from leaseq.adapters.postgres import connections, migrator, open_postgres

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text()
BOUNDS = connections.Bounds()
LIBPQ = connections._CONNECTION  # noqa: SLF001  what users are told


def _told(pattern: str) -> float:
    [number] = re.findall(pattern, PAGE)
    return float(number)


@pytest.mark.parametrize(
    ("pattern", "seconds"),
    [
        (r"\| a statement \| (\d+) s", BOUNDS.statement.total_seconds()),
        (r"\| its wait for a lock \| (\d+) s", BOUNDS.lock.total_seconds()),
        (r"that says nothing \| (\d+) s", BOUNDS.statement.total_seconds()),
        (r"says nothing at all \| (\d+) s", (BOUNDS.statement + connections._GRACE).seconds),  # noqa: SLF001
        (r"\| making a connection \| (\d+) s", LIBPQ["connect_timeout"]),
        (r"free connection \| (\d+) s", connections._WAIT_SECONDS),  # noqa: SLF001
        (r"and (\d+) s once that was in vain", connections._DRY_WAIT_SECONDS),  # noqa: SLF001
        (r"whose other end is gone \| (\d+) s", LIBPQ["tcp_user_timeout"] / 1000),
    ],
)
def test_timeouts_are_what_the_page_says(pattern: str, seconds: float) -> None:
    assert _told(pattern) == seconds


def test_a_peer_that_is_gone_is_noticed_by_keepalives_at_that_time_too() -> None:
    keepalives = LIBPQ["keepalives_idle"] + LIBPQ["keepalives_interval"] * LIBPQ["keepalives_count"]

    assert keepalives == _told(r"whose other end is gone \| (\d+) s")


def test_the_pools_are_as_large_as_the_page_says() -> None:
    defaults = inspect.signature(open_postgres).parameters

    assert defaults["pool_size"].default == _told(r"connections: (\d+) for everything")
    assert defaults["reserved_size"].default == _told(r"and (\d+) that only renew")


def test_migrations_wait_as_long_as_the_page_says() -> None:
    before = " ".join(migrator._BEFORE_THE_LOCK)  # noqa: SLF001
    wait = _told(r"A migration waits (\d+) seconds")
    minutes = _told(r"may take more than (\d+) minutes")

    assert f"statement_timeout = '{60 * minutes:.0f}s'" in before
    assert "after a minute of silence" in PAGE
    assert "idle_in_transaction_session_timeout = '60s'" in before
    assert f"'{wait:.0f}s'" in migrator._AFTER_THE_LOCK  # noqa: SLF001
