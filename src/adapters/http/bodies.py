"""What a request must be before anybody looks at what it asks for."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from starlette.requests import Request

from ...domain.errors import FieldViolation, InvalidArgumentError
from .status import RefusedRequestError, Verdict

MAX_BODY_BYTES: Final = 4 * 1024 * 1024
"""About what a gRPC request may have; more than four tasks of the largest payload."""

BODY_WITHIN: Final = timedelta(seconds=30)
"""From the end of the head to the end of the body."""

_DISCARDED_BYTES: Final = 8 * MAX_BODY_BYTES
"""
Of a body that is too large, so that its sender hears why.

Most clients look for an answer only when they have sent everything; one that hung up on
them would show as a broken connection.
"""

_CLOSE: Final = {"connection": "close"}


async def read_json_text(request: Request) -> str:
    """
    Return the JSON text that a request carries.

    Raises:
        RefusedRequestError: it is of another type, too large or too slow.
        InvalidArgumentError: it is not UTF-8.
    """
    try:
        async with asyncio.timeout(BODY_WITHIN.total_seconds()):
            raw = await _bytes(request)
    except TimeoutError:
        raise RefusedRequestError(
            Verdict(
                status=HTTPStatus.REQUEST_TIMEOUT,
                reason="BODY_TOO_SLOW",
                message=f"the body did not arrive within {BODY_WITHIN.total_seconds():.0f} s",
                headers=_CLOSE,
            )
        ) from None
    _check_type(request)
    return _decoded(raw)


def idempotency_key(request: Request) -> str | None:
    """
    Return what the header Idempotency-Key says; quoted (as the draft has it) or bare.

    Raises:
        InvalidArgumentError: it is given twice, or holds what only JSON can say safely.

    Source:
        IETF draft-ietf-httpapi-idempotency-key-header.
    """
    values = request.headers.getlist("idempotency-key")
    if not values:
        return None
    [value, *others] = values
    if others:
        raise _violation("header Idempotency-Key", "is given more than once")
    if not value.isascii():
        raise _violation(
            "header Idempotency-Key", "must be ASCII; the field idempotency_key takes any character"
        )
    quoted = len(value) > 1 and value[0] == value[-1] == '"'
    return value[1:-1].replace('\\"', '"').replace("\\\\", "\\") if quoted else value


async def _bytes(request: Request) -> bytes:
    announced = request.headers.get("content-length", "")
    is_announced = announced.isdecimal() and int(announced[:20]) > MAX_BODY_BYTES
    if is_announced and "expect" in request.headers:
        raise _too_large()  # and so the body will not even be sent
    size, chunks = 0, []
    async for chunk in request.stream():
        size += len(chunk)
        if size <= MAX_BODY_BYTES:
            chunks.append(chunk)
        elif size > _DISCARDED_BYTES:
            break
        else:
            chunks.clear()
    if size > MAX_BODY_BYTES:
        raise _too_large()
    return b"".join(chunks)


def _check_type(request: Request) -> None:
    types = [
        value.partition(";")[0].strip().lower() for value in request.headers.getlist("content-type")
    ]
    if types != ["application/json"]:
        raise _unsupported(
            f"the body must be of the type application/json, not {', '.join(types) or 'unnamed'}",
            {"accept": "application/json"},
        )
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise _unsupported(
            f"the body must not be encoded, as it is by {encoding}", {"accept-encoding": "identity"}
        )


def _decoded(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise _violation("body", f"is not UTF-8 at byte {error.start}") from None
    if text.startswith("\ufeff"):
        raise _violation("body", "begins with a byte order mark")
    return text


def _too_large() -> RefusedRequestError:
    words = f"is larger than {MAX_BODY_BYTES // 1024**2} MiB"
    return RefusedRequestError(
        Verdict(
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            reason="BODY_TOO_LARGE",
            message=f"the body {words}",
            violations=(FieldViolation(field="body", description=words),),
            headers=_CLOSE,
        )
    )


def _unsupported(words: str, headers: dict[str, str]) -> RefusedRequestError:
    return RefusedRequestError(
        Verdict(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            reason="UNSUPPORTED_MEDIA_TYPE",
            message=words,
            violations=(FieldViolation(field="body", description=words),),
            headers=headers,
        )
    )


def _violation(field: str, description: str) -> InvalidArgumentError:
    return InvalidArgumentError([FieldViolation(field=field, description=description)])
