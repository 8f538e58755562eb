"""What a plain install does not carry."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ..domain.errors import StorageError

_POSTGRES_MODULES = frozenset({"psycopg", "psycopg_pool", "psycopg_binary"})
_HTTP_MODULES = frozenset({"h11", "starlette", "uvicorn"})


class MissingExtraError(Exception):
    """Something was asked for that is not installed. `str()` says what to install."""


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


@contextmanager
def http_extra() -> Iterator[None]:
    """
    Import what serves HTTP, in a `with` block.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _HTTP_MODULES:
            raise
        raise MissingExtraError(
            "HTTP needs what is not installed: pip install 'leaseq[http]'"
        ) from error
