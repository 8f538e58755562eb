"""PostgreSQL in Docker, when an engine answers and has the image or gets it in good time."""

from __future__ import annotations

import contextlib
import gc
import time
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING

import docker  # type: ignore[import-untyped]  # the SDK has no types
import docker.errors  # type: ignore[import-untyped]
import requests
from testcontainers.community.postgres import PostgresContainer
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import Reaper
from testcontainers.core.docker_client import DockerClient

from .server import SERVER_SETTINGS, PostgresServer, PostgresUnavailableError, wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

IMAGE = "postgres:18"
_ANSWER_SECONDS = 3
# Less than the 60 s that a test may take, as the first test waits for the server.
_PULL_SECONDS = 40

_ENGINE_ERRORS = (docker.errors.DockerException, requests.RequestException, OSError)


@contextmanager
def postgres_in_docker() -> Iterator[PostgresServer]:
    """
    Run the image until the end; its companion Ryuk removes it when pytest is killed.

    Raises:
        PostgresUnavailableError: no engine answers, or an image is missing and slow to come.
    """
    images = [IMAGE]
    if not testcontainers_config.ryuk_disabled:
        images.append(testcontainers_config.ryuk_image)
    if refusal := _why_not(images):
        raise PostgresUnavailableError(refusal)
    # The image's entrypoint puts the server's name before arguments that begin with a dash.
    command = [f"-c{name}={value}" for name, value in SERVER_SETTINGS.items()]
    container = PostgresContainer(IMAGE, driver=None).with_command(command)
    try:
        with container:
            url = container.get_connection_url(driver=None)
            wait_until_ready(url, seconds=30, pause=1.0)
            yield PostgresServer(url=url, origin=f"Docker, {IMAGE}")
    except _ENGINE_ERRORS as error:
        raise PostgresUnavailableError(f"Docker failed: {error}") from error
    finally:
        Reaper.delete_instance()


def _why_not(images: list[str]) -> str | None:
    # The SDK drops sockets unclosed when the engine does not answer. Hence a text for a result:
    # an exception's traceback would keep them until somebody else is blamed for them.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        try:
            engine = DockerClient(timeout=_ANSWER_SECONDS).client
        except _ENGINE_ERRORS:
            refusal: str | None = "no Docker engine answers"
        else:
            with contextlib.closing(engine):
                refusal = _what_is_missing(engine, images)
        gc.collect()
    return refusal


def _what_is_missing(engine: docker.DockerClient, images: list[str]) -> str | None:
    deadline = time.monotonic() + _PULL_SECONDS
    try:
        for image in images:
            if not _obtained(engine, image, deadline=deadline):
                return f"Docker takes too long to pull {image}"
    except _ENGINE_ERRORS as error:
        return f"Docker does not get the image: {error}"
    return None


def _obtained(engine: docker.DockerClient, image: str, *, deadline: float) -> bool:
    try:
        engine.images.get(image)
    except docker.errors.ImageNotFound:
        # A streamed pull can be left at any line of its progress; the engine then gives it up.
        for _ in engine.api.pull(image, stream=True):
            if time.monotonic() > deadline:
                return False
        engine.images.get(image)
    return True
