"""An ASGI application that enqueues; FastAPI takes the same `lifespan`."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

import leaseq

URL = os.environ.get("QUEUE_URL", "grpc://127.0.0.1:7480")


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[dict[str, leaseq.AsyncClient]]:
    """Hold one client while the application runs, on the event loop that serves it."""
    async with leaseq.connect_async(URL) as client:
        yield {"client": client}


async def enqueue(request: Request) -> PlainTextResponse:
    """Enqueue a task named by the path, and answer with its id."""
    try:
        enqueued = await request.state.client.enqueue(
            "greet", {"path": request.url.path}, queue="web"
        )
    except leaseq.StorageUnavailableError as error:
        return PlainTextResponse(f"{error}\n", status_code=503)
    return PlainTextResponse(f"{enqueued.task.id}\n", status_code=202)


app = Starlette(routes=[Route("/{path:path}", enqueue, methods=["POST"])], lifespan=lifespan)
