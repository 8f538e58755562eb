"""Plays what the OpenAPI document allows, and what it does not, against a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS

from leaseq.adapters.http.openapi import openapi_document
from leaseq_process import leaseq_server

# What JSON Schema cannot say (bytes, times relative to now, the insides of a payload) makes
# requests that fit the document and are refused all the same.
NOT_PROMISED = {"positive_data_acceptance"}
BATCH = "/v1/tasks:batch"
OPERATIONS = [
    (path, method) for path, methods in openapi_document()["paths"].items() for method in methods
]


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder: Path = tmp_path_factory.mktemp("server")
    with leaseq_server("--http", "127.0.0.1:0", cwd=folder) as server:
        yield schemathesis.openapi.from_url(f"http://127.0.0.1:{server.http_port}/openapi.json")
        assert "Traceback" not in server.log


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.name.lower())
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_server_does_as_its_document_says(
    schema: Any, path: str, method: str, mode: GenerationMode
) -> None:
    operation = schema[path][method]
    if mode is GenerationMode.NEGATIVE and not (operation.body or operation.path_parameters):
        pytest.skip("nothing in such a request could be wrong")
    # A batch is accepted with the bad items in it, and these are refused in their places.
    not_promised = NOT_PROMISED | ({"negative_data_rejection"} if path == BATCH else set())
    excluded = [check for check in CHECKS.get_all() if check.__name__ in not_promised]

    @settings(
        max_examples=20,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(operation.as_strategy(generation_mode=mode))
    def validate(case: Any) -> None:
        case.call_and_validate(excluded_checks=excluded)

    validate()
