"""The queue on the wire."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from ...domain.ports import TaskAdmin, TaskQueue, Undo
from .admin_calls import AdminCalls
from .calls import Calls
from .methods import ADMIN_SERVICE, QUEUE_SERVICE
from .options import server_options
from .queue_calls import QueueCalls
from .waits import Waits

_HEALTH_NAMES: Final = ("", QUEUE_SERVICE, ADMIN_SERVICE)
_LAST_WORDS: Final = timedelta(seconds=0.5)

_STRAGGLERS_GET: Final = timedelta(seconds=5)
"""To wind up, after their calls were cut off at the end of the grace period."""


class GrpcServer:
    """
    Both services, health and (by option) reflection, on one address.

    Args:
        queue: its `lease` may be cancelled at any time, and bounds how many wait.
        undo: takes back leases that did not reach their worker.
    """

    def __init__(
        self,
        *,
        queue: TaskQueue,
        admin: TaskAdmin,
        undo: Undo,
        reflection: bool = False,
    ) -> None:
        self._calls = Calls()
        self._waits = Waits()
        self._queue_calls = QueueCalls(queue=queue, undo=undo, waits=self._waits)
        self._admin_calls = AdminCalls(admin=admin)
        self._reflection = reflection
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    async def start(
        self, address: str, *, credentials: grpc.ServerCredentials | None = None
    ) -> int:
        """
        Serve on `address` (`HOST:PORT`; port 0 takes a free one) and return the port.

        Raises:
            OSError: nobody can listen there.
        """
        server = grpc.aio.server(options=server_options())
        for service, handlers in (
            (QUEUE_SERVICE, self._queue_calls.handlers(self._calls)),
            (ADMIN_SERVICE, self._admin_calls.handlers(self._calls)),
        ):
            server.add_generic_rpc_handlers(
                [grpc.method_handlers_generic_handler(service, handlers)]
            )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        if self._reflection:
            names = (QUEUE_SERVICE, ADMIN_SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME)
            reflection.enable_server_reflection(names, server)
        port = _bound(server, address, credentials)
        await server.start()
        self._server = server
        await self.set_serving(serving=True)
        return port

    @property
    def in_flight(self) -> int:
        """How many calls are being answered, health and reflection apart."""
        return self._calls.in_flight

    async def set_serving(self, *, serving: bool) -> None:
        """Tell who asks for health whether calls are welcome; without effect once draining."""
        status = (
            health_pb2.HealthCheckResponse.SERVING
            if serving
            else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        for name in _HEALTH_NAMES:
            await self._health.set(name, status)

    async def drain(self, grace: timedelta) -> None:
        """
        Stop, and return when no handler runs any more.

        Health turns to NOT_SERVING, waiting Leases are answered empty, new calls are
        refused (UNAVAILABLE, with the word that nothing was done), calls in flight get
        `grace` to finish and are then cut off; leases that were not delivered are undone.
        """
        if self._server is None:
            return
        now = asyncio.get_running_loop().time
        cut_off_at = now() + grace.total_seconds()
        await self._health.enter_graceful_shutdown()
        self._calls.refuse_new()
        self._waits.end_all()
        if await self._calls.finished(within=grace):
            # From here on gRPC would let calls that it has received hang, without a handler.
            await self._calls.quiet(within=_LAST_WORDS)
        # Replies are still to be sent, and those who watch our health to be told; they would
        # never hang up by themselves.
        left = timedelta(seconds=max(0.0, cut_off_at - now()))
        await self._server.stop(min(left, _LAST_WORDS).total_seconds())
        # A handler may outlive its call, and the storage must outlive the handler.
        await self._calls.finished(within=_STRAGGLERS_GET)


def _bound(
    server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None
) -> int:
    try:
        if credentials is None:
            return server.add_insecure_port(address)
        return server.add_secure_port(address, credentials)
    except RuntimeError as error:
        raise OSError(
            f"cannot listen on {address}: it is in use, or no address of this computer"
        ) from error
