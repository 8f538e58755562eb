"""PostgreSQL's errors as ours. No message here quotes a row, a DSN or a password."""

from __future__ import annotations

import re
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

_LASTING_STATES: Final = ("28", "3D")
"""What the server says of a role, a password or a database that it does not accept."""

# At a connection's start the driver keeps no SQLSTATE, so that what is left are the words.
# Those of libpq about options are not translated as we start it; a server that speaks another
# language is taken for one that is away.
_LASTING_WORDS: Final[tuple[tuple[re.Pattern[str], str], ...]] = (
    (re.compile(r"is bad: invalid (?P<what>[\w-]+) value: "), "the DSN has an invalid {what}"),
    (re.compile(r"is bad: invalid (?P<what>port number): "), "the DSN has an invalid {what}"),
    (
        re.compile(r'is bad: invalid integer value ".*" for connection option "(?P<what>\w+)"'),
        "the DSN has an invalid {what}",
    ),
    (re.compile(r"is bad: definition of service "), "the DSN names an unknown service"),
    (
        re.compile(
            r'FATAL:  (?P<what>database ".*" does not exist|role ".*" does not exist'
            r'|role ".*" is not permitted to log in|no such database: .*'
            r'|password authentication failed for user ".*"|no pg_hba\.conf entry for .*'
            r'|permission denied for database ".*")$'
        ),
        "{what}",
    ),
    (re.compile(r"(?P<what>no password supplied)$"), "{what}"),
)
_SEVERAL: Final = "Multiple connection attempts failed"
_BEFORE_A_HOST: Final = re.compile(r"[^\s'\"]*@(?=[^\s@]*)")

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


def lasting_fault(error: psycopg.Error) -> str | None:
    """
    Return why no connection will be had however often it is tried, or None if it may be.

    Where several hosts were tried, all of them must have said so.
    """
    if (error.sqlstate or "").startswith(_LASTING_STATES):
        return error.diag.message_primary or type(error).__name__
    if error.sqlstate is not None:
        return None
    lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
    several = next((at for at, line in enumerate(lines) if line.startswith(_SEVERAL)), None)
    reasons = [_lasting(line) for line in lines[0 if several is None else several + 1 :]]
    return reasons[-1] if reasons and None not in reasons else None


def _lasting(line: str) -> str | None:
    for pattern, reason in _LASTING_WORDS:
        if found := pattern.search(line):
            return reason.format(**found.groupdict())
    return None


def words_of_driver(error: psycopg.Error) -> str:
    """
    Return the message without its details, which may quote a row, payload and all.

    Nor with what stands before an `@`, which may be of a password.
    """
    return error.diag.message_primary or _BEFORE_A_HOST.sub("***@", str(error))


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
