"""PostgreSQL's errors as ours. No message here quotes a row, a DSN or a password."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg
from psycopg import errors
from psycopg_pool import PoolClosed, PoolTimeout, TooManyRequests

from ...domain.errors import StorageError, StorageUnavailableError

DRIVER_ERRORS: Final = (psycopg.Error, UnicodeEncodeError)
"""What the driver raises; the second for text that holds a lone surrogate."""

# Begins of SQLSTATEs whose primary message is about the server and quotes no value.
_SPEAKS_OF_THE_SERVER: Final = ("08", "25", "28", "3D", "3F", "40", "42", "53", "55", "57", "58")

# What may work later: connection, serialization, resources, locks, intervention, system.
_PASSING: Final = ("08", "25006", "40", "53", "55", "57", "58")

# After these the statement is over and the connection as good as before: cancelled or
# timed out, lock not had, deadlock, serialization.
_ENDED_THE_STATEMENT_ONLY: Final = ("57014", "55P03", "40")

_STALE_PLAN: Final = "0A000"
"""`cached plan must not change result type`: the schema was migrated under a connection."""

_NOT_IN_TIME: Final = "57014"
_OF_THE_DRIVER: Final[dict[type[psycopg.Error], str]] = {
    psycopg.OperationalError: "the connection was lost, or there is none",
    PoolTimeout: "no connection could be had in time",
    TooManyRequests: "too many calls wait for a connection",
    PoolClosed: "the storage was closed",
}
_DATA: Final = ("22", "23", "54", "P0001")


@contextmanager
def translated() -> Iterator[None]:
    """Raise our errors for the driver's, with those as their cause."""
    try:
        yield
    except DRIVER_ERRORS as error:
        raise storage_error(error) from error


def is_refusal(error: psycopg.Error | UnicodeEncodeError) -> bool:
    """Whether the values of one row are at fault: a check, a trigger, text that cannot be kept."""
    if isinstance(error, UnicodeEncodeError):
        return True
    if error.sqlstate is not None:
        return error.sqlstate.startswith(_DATA)
    return isinstance(error, psycopg.DataError)


def is_read_only(error: psycopg.Error) -> bool:
    """Whether the server takes no writes, as after a failover to which a connection held on."""
    return isinstance(error, errors.ReadOnlySqlTransaction)


def breaks_connection(error: psycopg.Error) -> bool:
    """Whether the connection should not be used again."""
    state = error.sqlstate
    if state is None:
        return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
    if state == _STALE_PLAN:
        return True
    return state.startswith(_PASSING) and not state.startswith(_ENDED_THE_STATEMENT_ONLY)


def storage_error(error: psycopg.Error | UnicodeEncodeError) -> StorageError:
    """Return what callers are told for `error`, which is its cause."""
    told = _storage_error(error)
    told.__cause__ = error
    return told


def _storage_error(error: psycopg.Error | UnicodeEncodeError) -> StorageError:
    if isinstance(error, UnicodeEncodeError):
        return StorageError("text holds a lone surrogate, which cannot be stored")
    summary = _summary(error)
    if is_refusal(error):
        return StorageError(f"PostgreSQL refuses the row: {summary}")
    if breaks_connection(error) or (error.sqlstate or "").startswith(_PASSING):
        return StorageUnavailableError(f"PostgreSQL is not available: {summary}")
    return StorageError(f"PostgreSQL refuses: {summary}")


def _summary(error: psycopg.Error) -> str:
    state = error.sqlstate
    if state is None:
        return _OF_THE_DRIVER.get(type(error), type(error).__name__)
    if state == _NOT_IN_TIME:
        return "the statement took too long, or was cancelled"
    if state.startswith(_SPEAKS_OF_THE_SERVER) and error.diag.message_primary:
        return error.diag.message_primary
    # A check or an index is named, the values that broke it are not.
    place = error.diag.constraint_name
    return f"{type(error).__name__} ({place})" if place else type(error).__name__
