"""What each path answers. Every refusal is a problem document, whatever went wrong."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...domain import validation
from ...domain.errors import FieldViolation, InvalidArgumentError, TaskQueueError
from ...domain.ports import Clock, TaskQueue
from ..task_json import task_json
from .bodies import idempotency_key, read_json_text
from .enqueue_codec import read_batch, read_new_task, write_enqueued, write_result
from .health import Checks, readiness
from .hosts import Hosts
from .openapi import openapi_document
from .status import (
    CUT_OFF,
    DRAINING,
    INTERNAL,
    TOO_MANY_REQUESTS,
    RefusedRequestError,
    Verdict,
    verdict_on,
)

MAX_IN_FLIGHT: Final = 500
"""Requests that are answered at once; together their bodies stay below 2 GiB."""

_HEALTH: Final = frozenset({"/healthz", "/readyz"})
_ALWAYS: Final = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
_CLOSE: Final = {"connection": "close"}

Endpoint = Callable[[Request], Awaitable[Response]]

_log: Final = logging.getLogger(__name__)


class Gate:
    """Lets in the requests that shall be answered at all."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts
        self._in_flight = 0
        self.draining = False
        """Whether every request but those for health is refused."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        verdict = self._refusal(scope)
        app = self._app if verdict is None else _problem(verdict)
        answered = False

        async def sending(message: Message) -> None:
            nonlocal answered
            answered = True
            await send(message)

        self._in_flight += 1
        try:
            await app(scope, receive, sending)
        except asyncio.CancelledError:
            if not answered:
                await _problem(CUT_OFF, _CLOSE)(scope, receive, send)
            raise
        finally:
            self._in_flight -= 1

    def _refusal(self, scope: Scope) -> Verdict | None:
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        name = host.decode("latin-1")
        if not self._hosts.allow(name):
            return Verdict(
                status=HTTPStatus.MISDIRECTED_REQUEST,
                reason="HOST_NOT_ALLOWED",
                message=f"this server does not answer to the name {name!r};"
                " its operator can allow it by --http-hosts",
                headers=_CLOSE,
            )
        if scope["path"] in _HEALTH:
            return None
        if self.draining:
            return DRAINING
        return TOO_MANY_REQUESTS if self._in_flight >= MAX_IN_FLIGHT else None


class Endpoints:
    """The queue's paths."""

    def __init__(self, *, queue: TaskQueue, clock: Clock, checks: Checks) -> None:
        self._queue = queue
        self._clock = clock
        self._checks = checks

    def routes(self) -> list[Route]:
        """Return every path with its endpoint."""
        return [
            Route("/enqueue", _answering(self._enqueue), methods=["POST"]),
            Route("/v1/tasks:batch", _answering(self._enqueue_batch), methods=["POST"]),
            Route("/v1/tasks/{task_id}", _answering(self._get_task), methods=["GET"]),
            Route("/openapi.json", _answering(self._openapi), methods=["GET"]),
            Route("/healthz", _answering(self._alive), methods=["GET"]),
            Route("/readyz", _answering(self._ready), methods=["GET"]),
        ]

    async def _enqueue(self, request: Request) -> Response:
        text = await read_json_text(request)
        key = idempotency_key(request)
        new = read_new_task(text, now=self._clock.now(), idempotency_key=key)
        [outcome] = await self._queue.enqueue([new])
        if isinstance(outcome, TaskQueueError):
            raise outcome
        return _json(
            write_enqueued(outcome),
            status=HTTPStatus.CREATED if outcome.created else HTTPStatus.OK,
            headers={"location": f"/v1/tasks/{outcome.task.id}"},
        )

    async def _enqueue_batch(self, request: Request) -> Response:
        text = await read_json_text(request)
        if idempotency_key(request) is not None:
            fault = "names one task; here each has a field idempotency_key"
            raise InvalidArgumentError(
                [FieldViolation(field="header Idempotency-Key", description=fault)]
            )
        read = read_batch(text, now=self._clock.now())
        validation.batch_size("tasks", read)
        sound = [item for item in read if not isinstance(item, InvalidArgumentError)]
        answers = iter(await self._queue.enqueue(sound))
        outcomes = [
            item if isinstance(item, InvalidArgumentError) else next(answers) for item in read
        ]
        return _json({"results": [write_result(outcome) for outcome in outcomes]})

    async def _get_task(self, request: Request) -> Response:
        task = await self._queue.get(request.path_params["task_id"])
        return _response(task_json(task))

    async def _openapi(self, _: Request) -> Response:
        return _json(openapi_document())

    async def _alive(self, _: Request) -> Response:
        return _json({"status": "alive"})

    async def _ready(self, _: Request) -> Response:
        document = readiness(await self._checks())
        ready = document["ready"]
        return _json(document, status=HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE)


def make_app(endpoints: Endpoints, *, hosts: Hosts) -> Gate:
    """Return the application."""
    app = Starlette(routes=endpoints.routes(), exception_handlers={HTTPException: _no_such_thing})
    # A redirect would lead a POST to a path that was never asked for.
    app.router.redirect_slashes = False
    return Gate(app, hosts)


def _answering(endpoint: Endpoint) -> Endpoint:
    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except TaskQueueError as error:
            verdict = verdict_on(error)
            if verdict.status is HTTPStatus.INTERNAL_SERVER_ERROR:
                _log.warning("%s failed: %s", request.url.path, error)
        except RefusedRequestError as refusal:
            verdict = refusal.verdict
        except ClientDisconnect:
            return Response(status_code=HTTPStatus.BAD_REQUEST)  # nobody is there to read it
        except Exception:  # noqa: BLE001  whatever happens, the request is answered
            # The caller learns nothing of what may be a secret.
            _log.exception("%s failed", request.url.path)
            verdict = INTERNAL
        return _problem(verdict)

    return answer


async def _no_such_thing(_: Request, error: Exception) -> Response:
    status = HTTPStatus(error.status_code) if isinstance(error, HTTPException) else None
    return _problem(
        Verdict(
            status=status or HTTPStatus.INTERNAL_SERVER_ERROR,
            reason=status.name if status else INTERNAL.reason,
            message=status.description if status else INTERNAL.message,
            headers=(isinstance(error, HTTPException) and error.headers) or {},
        )
    )


def _problem(verdict: Verdict, more: dict[str, str] | None = None) -> Response:
    seconds = verdict.retry_seconds
    return _json(
        verdict.problem,
        status=verdict.status,
        headers={
            **verdict.headers,
            **({} if seconds is None else {"retry-after": str(seconds)}),
            **(more or {}),
        },
        media_type="application/problem+json",
    )


def _json(
    document: dict[str, Any],
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    return _response(json.dumps(document), status=status, headers=headers, media_type=media_type)


def _response(
    text: str,
    *,
    status: HTTPStatus = HTTPStatus.OK,
    headers: dict[str, str] | None = None,
    media_type: str = "application/json",
) -> Response:
    return Response(
        text + "\n",
        status_code=status,
        headers={"date": formatdate(usegmt=True), **_ALWAYS, **(headers or {})},
        media_type=media_type,
    )
