"""What a plain install does not carry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..domain.errors import StorageError

_POSTGRES_MODULES = frozenset({"psycopg", "psycopg_pool", "psycopg_binary"})


@contextmanager
def postgres_extra() -> Iterator[None]:
    """
    Import what needs the driver of PostgreSQL, in a `with` block.

    Raises:
        StorageError: it is not installed; says what to install.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _POSTGRES_MODULES | {""}:
            raise
        raise StorageError(
            "PostgreSQL needs a driver that is not installed: pip install 'leaseq[postgres]'"
        ) from error
