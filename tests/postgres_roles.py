"""Roles with no more rights than `docs/operating.md` grants, on a database that grants nothing."""

from __future__ import annotations

import re
import secrets
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, LiteralString
from urllib.parse import urlsplit

import attrs
import psycopg
import pytest
from psycopg import sql

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SCHEMA = 'q-1"x'
_PAGE = Path(__file__).parents[1] / "docs" / "operating.md"


@attrs.frozen(kw_only=True)
class Site:
    """A database of its own, as three roles see it, and what the page says about it."""

    admin_url: str
    owner_url: str
    """Of a role that owns the schema, and may do nothing else."""

    server_url: str
    """Of one that reads and writes its tables."""

    page: tuple[LiteralString, ...]
    """The page's SQL for these roles: the preparation, the least grants, the general ones."""

    def prepare(self) -> None:
        _execute(self.admin_url, self.page[0])

    def grant_least(self) -> None:
        _execute(self.owner_url, self.page[1])

    def grant_for_all_time(self) -> None:
        _execute(self.owner_url, self.page[2])

    def execute(self, statements: LiteralString) -> None:
        """Run statements as the superuser, with `leaseq.` for the schema."""
        _execute(self.admin_url, _renamed(statements, {"leaseq": SCHEMA}))


@pytest.fixture
def site(postgres_url: str) -> Iterator[Site]:
    """A database that was prepared as the page says; nothing is migrated yet."""
    tag = secrets.token_hex(4)
    owner, server, database = f"owner_{tag}", f"server_{tag}", f"leaseq_test_site_{tag}"
    names = {"leaseq": SCHEMA, "app": database, "leaseq_owner": owner, "leaseq_server": server}
    with ExitStack() as stack:
        passwords = [stack.enter_context(_role(postgres_url, role)) for role in (owner, server)]
        admin_url = stack.enter_context(_database(postgres_url, database))
        site = Site(
            admin_url=admin_url,
            owner_url=_as(admin_url, owner, passwords[0]),
            server_url=_as(admin_url, server, passwords[1]),
            page=tuple(_renamed(text, names) for text in _sql_of_the_page()),
        )
        site.prepare()
        yield site


def _sql_of_the_page() -> list[str]:
    return re.findall(r"```sql\n(.*?)```", _PAGE.read_text(), re.DOTALL)


def _renamed(text: str, names: Mapping[str, str]) -> LiteralString:
    def quoted(match: re.Match[str]) -> str:
        return sql.Identifier(names[match[0]]).as_string() if match[0] in names else match[0]

    return re.sub(r"\w+", quoted, text)


def _as(url: str, role: str, password: str) -> str:
    parts = urlsplit(url)
    address = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{password}@{address}").geturl()


def _execute(url: str, statements: LiteralString) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statements)


@contextmanager
def _role(url: str, name: str) -> Iterator[str]:
    password, role = secrets.token_hex(8), sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
        connection.execute(sql.SQL("ALTER ROLE {} SET search_path = ''").format(role))
        connection.pgconn.change_password(name.encode(), password.encode())
        try:
            yield password
        finally:
            connection.execute(sql.SQL("DROP ROLE {}").format(role))


@contextmanager
def _database(url: str, name: str) -> Iterator[str]:
    database = sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(database))
        try:
            # What everybody may do by default is not to be what makes a test pass.
            connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC").format(database))
            yield urlsplit(url)._replace(path=f"/{name}").geturl()
        finally:
            connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
