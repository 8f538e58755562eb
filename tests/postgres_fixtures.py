"""What tests of the PostgreSQL storage start from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import psycopg
import pytest
from psycopg import sql

from leaseq.adapters.postgres import open_postgres
from leaseq.testing.conformance.fixtures import StorageFixtures

if TYPE_CHECKING:
    from collections.abc import Iterator

    from leaseq.domain.ports import Storage
    from leaseq.testing import Connect


class PostgresFixtures(StorageFixtures):
    """A storage in a schema of its own, and its tables as whoever has psql sees them."""

    @pytest.fixture
    def connect(self, postgres_url: str, postgres_schema: str) -> Connect:
        return partial(open_postgres, postgres_url, schema=postgres_schema)

    @pytest.fixture
    def tables(
        self,
        storage: Storage,  # noqa: ARG002  opening it makes the tables
        postgres_url: str,
        postgres_schema: str,
    ) -> Iterator[psycopg.Connection]:
        with connected(postgres_url, postgres_schema) as connection:
            yield connection


def connected(url: str, schema: str) -> psycopg.Connection:
    """Connect in autocommit, with the tables of `schema` in sight."""
    connection = psycopg.connect(url, autocommit=True, application_name="test")
    connection.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))
    connection.execute("SET lock_timeout TO '10s'")
    return connection
