from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from psycopg_pool import PoolTimeout

from leaseq.adapters.postgres.faults import (
    breaks_connection,
    is_refusal,
    lasting_fault,
    translated,
    words_of_driver,
)
from leaseq.domain.errors import StorageError, StorageUnavailableError

SECRET = "postgresql://ada:hunter2@db/leaseq {payload}"

PASSING: list[tuple[psycopg.Error, bool]] = [
    (psycopg.OperationalError(SECRET), True),
    (psycopg.InterfaceError(SECRET), True),
    (PoolTimeout(SECRET), True),
    (errors.AdminShutdown(SECRET), True),
    (errors.CannotConnectNow(SECRET), True),
    (errors.ConnectionFailure(SECRET), True),
    (errors.ReadOnlySqlTransaction(SECRET), True),
    (errors.FeatureNotSupported(SECRET), True),
    (errors.DiskFull(SECRET), True),
    (errors.QueryCanceled(SECRET), False),
    (errors.LockNotAvailable(SECRET), False),
    (errors.DeadlockDetected(SECRET), False),
    (errors.SerializationFailure(SECRET), False),
]
LASTING: list[tuple[Exception, bool]] = [
    (errors.CheckViolation(SECRET), True),
    (errors.InvalidTextRepresentation(SECRET), True),
    (errors.RaiseException(SECRET), True),
    (errors.ProgramLimitExceeded(SECRET), True),
    (psycopg.DataError(SECRET), True),
    (UnicodeEncodeError("utf-8", SECRET, 0, 1, "surrogates not allowed"), True),
    (errors.UndefinedTable(SECRET), False),
    (errors.InsufficientPrivilege(SECRET), False),
    (errors.InternalError_(SECRET), False),
]


def names(cases: list[tuple[psycopg.Error, bool]] | list[tuple[Exception, bool]]) -> list[str]:
    return [type(error).__name__ for error, _ in cases]


@pytest.mark.parametrize(("error", "breaks"), PASSING, ids=names(PASSING))
def test_what_may_pass_is_unavailable_and_says_whether_the_connection_is_lost(
    error: psycopg.Error, *, breaks: bool
) -> None:
    with pytest.raises(StorageUnavailableError), translated():
        raise error

    assert breaks_connection(error) is breaks
    assert not is_refusal(error)


@pytest.mark.parametrize(("error", "refusal"), LASTING, ids=names(LASTING))
def test_what_lasts_is_a_storage_error_and_says_whether_one_row_is_at_fault(
    error: psycopg.Error | UnicodeEncodeError, *, refusal: bool
) -> None:
    with pytest.raises(StorageError) as told, translated():
        raise error

    assert type(told.value) is StorageError
    assert is_refusal(error) is refusal


@pytest.mark.parametrize(
    "error", [error for error, _ in [*PASSING, *LASTING]], ids=names(PASSING) + names(LASTING)
)
def test_no_message_quotes_what_the_driver_said_and_the_cause_is_kept(error: Exception) -> None:
    with pytest.raises(StorageError) as told, translated():
        raise error

    assert "hunter2" not in str(told.value)
    assert "payload" not in str(told.value)
    assert told.value.__cause__ is error


AT = 'connection to server at "127.0.0.1", port 1 failed: '
NO_DATABASE = f'connection failed: {AT}FATAL:  database "x" does not exist'
AWAY = f"connection failed: {AT}Connection refused\n\tIs the server running on that host?"
SEVERAL = "\nMultiple connection attempts failed. All failures were:\n"


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (psycopg.OperationalError(NO_DATABASE), 'database "x" does not exist'),
        (
            psycopg.OperationalError(f"{NO_DATABASE}{SEVERAL}- host: a: {NO_DATABASE}"),
            'database "x" does not exist',
        ),
        (
            psycopg.OperationalError('connection is bad: invalid sslmode value: "hunter2"'),
            "the DSN has an invalid sslmode",
        ),
        (errors.InvalidPassword("28P01"), "InvalidPassword"),
    ],
)
def test_what_no_waiting_heals_is_told_at_once(error: psycopg.Error, why: str) -> None:
    assert lasting_fault(error) == why


@pytest.mark.parametrize(
    "error",
    [
        psycopg.OperationalError(AWAY),
        psycopg.OperationalError(f"connection failed: {AT}FATAL:  the database system is starting"),
        psycopg.OperationalError(f"{AWAY}{SEVERAL}- host: a: {NO_DATABASE}\n- host: b: {AWAY}"),
        psycopg.OperationalError(f"{NO_DATABASE}\nDETAIL:  Its folder is missing."),
        psycopg.OperationalError("failed to resolve host 'x'"),
        psycopg.OperationalError(""),
        errors.AdminShutdown("57P01"),
    ],
)
def test_what_may_heal_is_waited_for(error: psycopg.Error) -> None:
    assert lasting_fault(error) is None


def test_what_may_be_of_a_password_is_cut_from_what_the_driver_says() -> None:
    error = psycopg.OperationalError("failed to resolve host 'hunter2@h': unknown")

    assert words_of_driver(error) == "failed to resolve host '***@h': unknown"
