"""The HTTP door on a memory storage, without a socket and on one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

import attrs
import httpx

from leaseq.adapters.batching.queue import BatchingQueue
from leaseq.adapters.http.app import Endpoints, Gate, make_app
from leaseq.adapters.http.health import Check
from leaseq.adapters.http.hosts import Hosts
from leaseq.adapters.http.server import HttpServer
from leaseq.adapters.memory import MemoryStorage
from leaseq.domain.ports import Storage
from memory_server import GRACE, memory_services

JSON = {"content-type": "application/json"}


async def no_checks() -> Sequence[Check]:
    return []


@attrs.frozen(kw_only=True)
class Door:
    http: httpx.AsyncClient
    gate: Gate
    queue: BatchingQueue

    async def enqueue(self, body: str | bytes, **headers: str) -> httpx.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await self.http.post("/enqueue", content=body, headers=JSON | named)


@contextlib.asynccontextmanager
async def http_door(storage: Storage | None = None) -> AsyncIterator[Door]:
    storage = storage or MemoryStorage()
    queue = memory_services(storage).queue
    endpoints = Endpoints(queue=queue, clock=storage.clock, checks=no_checks)
    gate = make_app(endpoints, hosts=Hosts())
    transport = httpx.ASGITransport(app=gate)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        yield Door(http=http, gate=gate, queue=queue)
    await queue.close()


@contextlib.asynccontextmanager
async def http_server(storage: Storage | None = None) -> AsyncIterator[tuple[HttpServer, int]]:
    storage = storage or MemoryStorage()
    queue = memory_services(storage).queue
    server = HttpServer(queue=queue, clock=storage.clock, checks=no_checks)
    port = await server.start("127.0.0.1", 0)
    try:
        yield server, port
    finally:
        await server.drain(GRACE)
        await queue.close()
