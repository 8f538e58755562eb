from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from psycopg.errors import QueryCanceled

from leaseq.adapters.postgres.listing import Listing
from leaseq.adapters.postgres.statements import Schema, Statement
from leaseq.domain.errors import StorageError
from leaseq.domain.storing import Selection
from leaseq.domain.task import Status

if TYPE_CHECKING:
    from collections.abc import Mapping


def test_parameters_are_numbered_in_the_order_of_their_first_use() -> None:
    statement = Schema("s").statement("SELECT %(b)b, %(a)b, %(b)b FROM {tasks}")

    assert statement == Statement(b'SELECT $1, $2, $1 FROM "s"."tasks"', ("b", "a"))


def test_parts_are_filled_in_and_may_use_those_before_them() -> None:
    statement = Schema("s").statement("{outer}", inner="id = %(id)b", outer="DELETE WHERE {inner}")

    assert statement == Statement(b"DELETE WHERE id = $1", ("id",))


@pytest.mark.parametrize("name", ['q-1"x', "100% %(id)b", "{tasks} {0}", "naïve 🦊"])
def test_a_schema_may_have_any_name(name: str) -> None:
    quoted = name.replace('"', '""').encode()

    statement = Schema(name).statement("SELECT %(id)b FROM {queues}")

    assert statement == Statement(b'SELECT $1 FROM "%b"."queues"' % quoted, ("id",))


class SlowConnections:
    def __init__(self) -> None:
        self.asked: list[Statement] = []

    async def fetch(
        self, statement: Statement, parameters: Mapping[str, object], **_: object
    ) -> list[tuple[Any, ...]]:
        assert set(statement.names) <= set(parameters)
        self.asked.append(statement)
        raise QueryCanceled("canceling statement due to statement timeout")


@pytest.mark.parametrize(
    "selection", [Selection(), Selection(statuses=(Status.DEAD,))], ids=["all", "dead"]
)
async def test_a_list_that_takes_too_long_says_what_to_do(selection: Selection) -> None:
    listing = Listing(SlowConnections(), Schema("s"))  # type: ignore[arg-type]  # stands for Connections

    with pytest.raises(StorageError, match="ask for less"):
        await listing.search(selection, limit=10, with_payload=False)
