from __future__ import annotations

from typing import Any

import attrs

from http_doors import no_checks
from leaseq.adapters.http import enqueue_codec
from leaseq.adapters.http.app import Endpoints
from leaseq.adapters.http.openapi import openapi_document
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.views import TaskView
from memory_server import memory_services

DOCUMENT = openapi_document()
SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]


async def test_the_document_names_every_path_and_method_and_no_other() -> None:
    storage = MemoryStorage()
    queue = memory_services(storage).queue
    routes = Endpoints(queue=queue, clock=storage.clock, checks=no_checks).routes()
    served = {
        (route.path, method.lower())
        for route in routes
        for method in (route.methods or set()) - {"HEAD"}
    }

    told = {(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods}

    assert told == served


def test_the_document_names_every_field_that_is_read() -> None:
    assert set(SCHEMAS["NewTask"]["properties"]) == set(enqueue_codec._FIELDS)  # noqa: SLF001


def test_the_document_names_every_field_of_a_task() -> None:
    assert set(SCHEMAS["Task"]["properties"]) == {field.name for field in attrs.fields(TaskView)}
