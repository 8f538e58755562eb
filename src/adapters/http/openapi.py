"""The door described for machines, with the bounds that the domain has."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from ...domain.limits import (
    DEFAULT_ATTEMPTS,
    DEFAULT_QUEUE,
    DEFAULT_RETRY_BASE,
    DEFAULT_RETRY_CAP,
    MAX_ATTEMPTS,
    MAX_BATCH,
    MAX_DELAY,
    MAX_KEY_BYTES,
    MAX_PRIORITY,
    MAX_RETRY_BASE,
    MAX_RETRY_CAP,
    MIN_ATTEMPTS,
    MIN_PRIORITY,
    MIN_RETRY_BASE,
    NAME_PATTERN,
)
from ...domain.task import Status

Schema = dict[str, Any]

_NAME: Final[Schema] = {"type": "string", "pattern": f"^{NAME_PATTERN}$"}
_KEY: Final[Schema] = {
    "type": "string",
    "maxLength": MAX_KEY_BYTES,
    "pattern": r"^(\S([^\u0000-\u001f\u007f-\u009f]*\S)?)?$",
    "description": f"At most {MAX_KEY_BYTES} bytes of UTF-8.",
}
_MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}
_OPTIONAL_MOMENT: Final[Schema] = {"type": ["string", "null"], "format": "date-time"}
_OPTIONAL_TEXT: Final[Schema] = {"type": ["string", "null"]}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_STATUS: Final[Schema] = {"type": "string", "enum": [status.value for status in Status]}
_UUID7: Final = (
    "[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-7[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}"
)
_TASK_ID: Final[Schema] = {"type": "string", "format": "uuid"}


def openapi_document() -> Schema:
    """Return the document, in OpenAPI 3.1."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "leaseq",
            "version": "1",
            "description": "A durable, distributed task queue. Tasks are enqueued here, and leased"
            " over gRPC.",
        },
        "paths": {
            "/enqueue": {"post": _enqueue()},
            "/v1/tasks:batch": {"post": _enqueue_batch()},
            "/v1/tasks/{task_id}": {"get": _get_task()},
            "/openapi.json": {"get": _look("openapi", "This document.", {"type": "object"})},
            "/healthz": {"get": _look("healthz", "Whether the process is alive.", _ref("Alive"))},
            "/readyz": {"get": _readyz()},
        },
        "components": {
            "schemas": {
                "NewTask": _new_task(),
                "NewTasks": _object(
                    {"tasks": _array(_ref("NewTask"), at_most=MAX_BATCH)}, required=["tasks"]
                ),
                "Enqueued": _enqueued(),
                "Results": _object({"results": _array(_ref("Result"))}),
                "Result": {
                    "oneOf": [
                        _object({"ok": _ref("Enqueued")}),
                        _object({"refused": _ref("Problem")}),
                    ]
                },
                "Task": _task(),
                "Alive": _object({"status": {"const": "alive"}}),
                "Readiness": _readiness(),
                "Problem": _problem(),
            }
        },
    }


def _enqueue() -> Schema:
    refusals = _refusals(400, 408, 409, 413, 415, 421, 429, 500, 503)
    location = {"location": {"schema": {"type": "string"}, "description": "Path of the task."}}
    return {
        "operationId": "enqueue",
        "summary": "Enqueue a task.",
        "parameters": [
            {
                "name": "Idempotency-Key",
                "in": "header",
                "description": "Says what `idempotency_key` says, in ASCII; quoted or bare.",
                "schema": {"type": "string"},
            }
        ],
        "requestBody": _body(_ref("NewTask")),
        "responses": {
            "201": _answer("The task is stored.", _ref("Enqueued")) | {"headers": location},
            "200": _answer("A task with this key was stored before.", _ref("Enqueued"))
            | {"headers": location},
            **refusals,
        },
    }


def _enqueue_batch() -> Schema:
    return {
        "operationId": "enqueueBatch",
        "summary": "Enqueue tasks, with a result for each.",
        "requestBody": _body(_ref("NewTasks")),
        "responses": {
            "200": _answer("What became of each task, in the order given.", _ref("Results")),
            **_refusals(400, 408, 413, 415, 421, 429, 500, 503),
        },
    }


def _get_task() -> Schema:
    return {
        "operationId": "getTask",
        "summary": "Look at a task.",
        "parameters": [{"name": "task_id", "in": "path", "required": True, "schema": _TASK_ID}],
        "responses": {
            "200": _answer("The task.", _ref("Task")),
            **_refusals(400, 404, 421, 429, 500, 503),
        },
    }


def _readyz() -> Schema:
    return {
        "operationId": "readyz",
        "summary": "Whether requests are welcome.",
        "responses": {
            "200": _answer("They are.", _ref("Readiness")),
            "503": _answer("They are not; `failed` says why.", _ref("Readiness")),
            **_refusals(421, 500),
        },
    }


def _look(name: str, summary: str, schema: Schema) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "responses": {"200": _answer(summary, schema), **_refusals(421, 429, 500, 503)},
    }


def _new_task() -> Schema:
    year = _seconds(timedelta(0), MAX_DELAY)
    return _object(
        {
            "type": _NAME | {"description": "Chooses the handler."},
            "payload": {
                "type": "object",
                "default": {},
                "description": "At most 1 MiB and 64 levels; no NUL and no lone surrogate.",
            },
            "queue": {
                "type": "string",
                "pattern": f"^({NAME_PATTERN})?$",
                "default": DEFAULT_QUEUE,
            },
            "priority": _whole(MIN_PRIORITY, MAX_PRIORITY, 0)
            | {"description": "Higher is leased first."},
            "delay": year | {"description": "Seconds. Not together with `run_after`."},
            "run_after": _MOMENT | {"description": "At most 365 days ahead; the past means now."},
            "max_attempts": _whole(MIN_ATTEMPTS, MAX_ATTEMPTS, DEFAULT_ATTEMPTS),
            "retry": _object(
                {
                    "base": _seconds(MIN_RETRY_BASE, MAX_RETRY_BASE, DEFAULT_RETRY_BASE),
                    "cap": _seconds(MIN_RETRY_BASE, MAX_RETRY_CAP, DEFAULT_RETRY_CAP),
                },
                required=[],
            )
            | {"description": "Seconds; the wait doubles from `base` up to `cap`."},
            "idempotency_key": _KEY,
            "allow_different_payload": {"type": "boolean", "default": False},
            "task_id": {
                "type": "string",
                "pattern": f"^({_UUID7})?$",
                "description": "A new UUIDv7, so that a repeat changes nothing.",
            },
        },
        required=["type"],
    )


def _enqueued() -> Schema:
    return _object(
        {
            "task_id": _TASK_ID,
            "created": {"type": "boolean", "description": "False: the key was taken."},
            "queue": _NAME,
            "type": _NAME,
            "status": _STATUS,
            "run_after": _MOMENT,
        }
    )


def _task() -> Schema:
    error = _object(
        {
            "attempt": _COUNT,
            "worker_id": {"type": "string"},
            "at": _MOMENT,
            "type": {"type": "string"},
            "message": {"type": "string"},
            "traceback": {"type": "string"},
        }
    )
    return _object(
        {
            "id": _TASK_ID,
            "queue": _NAME,
            "type": _NAME,
            "payload": {"type": "object"},
            "status": _STATUS,
            "priority": _COUNT,
            "attempts": _COUNT,
            "max_attempts": _COUNT,
            "run_after": _MOMENT,
            "created_at": _MOMENT,
            "updated_at": _MOMENT,
            "finished_at": _OPTIONAL_MOMENT,
            "lease_owner": _OPTIONAL_TEXT,
            "lease_expires_at": _OPTIONAL_MOMENT,
            "idempotency_key": _OPTIONAL_TEXT,
            "last_error": _OPTIONAL_TEXT,
            "errors": _array(error),
            "result": {"description": "Any JSON; null: none."},
        }
    )


def _readiness() -> Schema:
    age = {"type": ["number", "null"]}
    check = _object(
        {
            "name": {"type": "string"},
            "ok": {"type": "boolean"},
            "fault": _OPTIONAL_TEXT,
            "age_seconds": age,
            "limit_seconds": age,
        }
    )
    return _object(
        {
            "ready": {"type": "boolean"},
            "failed": _array({"type": "string"}),
            "checks": _array(check),
        }
    )


def _problem() -> Schema:
    violation = _object({"field": {"type": "string"}, "description": {"type": "string"}})
    always: Schema = {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "reason": {"type": "string"},
    }
    sometimes: Schema = {
        "violations": _array(violation),
        "task_id": {"type": "string"},
        "queue": {"type": "string"},
        "key": {"type": "string"},
    }
    return _object(always | sometimes, required=list(always))


def _refusals(*statuses: int) -> Schema:
    content = {"application/problem+json": {"schema": _ref("Problem")}}
    retry = {"retry-after": {"schema": {"type": "string", "pattern": "^[0-9]+$"}}}
    return {
        str(status): {
            "description": _WORDS[status],
            "content": content,
            **({"headers": retry} if status in {429, 503} else {}),
        }
        for status in statuses
    }


_WORDS: Final = {
    400: "The request has faults, each named in `violations`.",
    404: "No task has this id.",
    408: "The body took too long.",
    409: "The key or the id belongs to `task_id`, a task of another kind.",
    413: "The body is too large.",
    415: "The body is not JSON by its type.",
    421: "The server does not answer to the name in the header Host.",
    429: "Too much at once.",
    500: "The server failed.",
    503: "The storage is away, or the server is stopping.",
}


def _body(schema: Schema) -> Schema:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _answer(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _object(properties: Schema, *, required: list[str] | None = None) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties) if required is None else required,
        "additionalProperties": False,
    }


def _array(items: Schema, *, at_most: int | None = None) -> Schema:
    bound = {} if at_most is None else {"maxItems": at_most}
    return {"type": "array", "items": items, **bound}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _whole(low: int, high: int, default: int) -> Schema:
    return {"type": "integer", "minimum": low, "maximum": high, "default": default}


def _seconds(low: timedelta, high: timedelta, default: timedelta | None = None) -> Schema:
    bounds = {"type": "number", "minimum": low.total_seconds(), "maximum": high.total_seconds()}
    return bounds if default is None else bounds | {"default": default.total_seconds()}
