"""
The composition root: which adapter stands behind which port.

The only module that knows dependency-injector. What is made here gets what it needs
through its constructor, and knows nothing of containers.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any, assert_never

import attrs
from dependency_injector import containers, providers

from ..adapters.batching.queue import BatchingQueue
from ..adapters.ids import RandomIds, RandomJitter
from ..adapters.memory import MemoryStorage
from ..adapters.sqlite import open_sqlite
from ..adapters.wake_up import LocalWakeUp
from ..domain.admin import AdminService
from ..domain.maintenance import MaintenanceService
from ..domain.ports import Ids, Jitter, Maintenance, Storage, TaskAdmin, WakeUp
from ..domain.service import QueueService
from .extras import http_extra, postgres_extra
from .third_party import opener
from .urls import MemoryUrl, PostgresUrl, SqliteUrl, StorageUrl, ThirdPartyUrl

if TYPE_CHECKING:
    from ..adapters.http.health import Checks
    from ..adapters.http.server import HttpServer

OpenStorage = AbstractAsyncContextManager[Storage]


@attrs.frozen(kw_only=True)
class Services:
    """The driving ports, on one open storage."""

    queue: BatchingQueue
    """A `TaskQueue` that is also an `Undo`, and can be told to let go of those who wait."""

    admin: TaskAdmin
    maintenance: Maintenance
    storage: Storage
    jitter: Jitter


@asynccontextmanager
async def open_services(url: StorageUrl) -> AsyncIterator[Services]:
    """
    Open the storage that `url` names, and give the services on it.

    Raises:
        StorageUnavailableError: it cannot be reached; trying again may work.
        StorageError: it cannot be used, or what it needs is not installed.
    """
    container = _Container(url=url)
    async with container.opens_storage() as storage:
        container.storage.override(providers.Object(storage))
        queue = container.queue()
        try:
            yield Services(
                queue=queue,
                admin=container.admin(),
                maintenance=container.maintenance(),
                storage=storage,
                jitter=container.jitter(),
            )
        finally:
            await queue.close()


def http_server(services: Services, *, checks: Checks, names: Collection[str]) -> HttpServer:
    """
    Return the HTTP door to `services`.

    Raises:
        MissingExtraError: what it needs is not installed.
    """
    with http_extra():
        from ..adapters.http.server import HttpServer  # noqa: PLC0415  an extra
    return HttpServer(
        queue=services.queue, clock=services.storage.clock, checks=checks, names=names
    )


@asynccontextmanager
async def _open_memory() -> AsyncIterator[Storage]:
    yield MemoryStorage()


def _open_postgres(url: PostgresUrl) -> OpenStorage:
    with postgres_extra():
        from ..adapters.postgres.storage import open_postgres  # noqa: PLC0415  an extra
    return open_postgres(url.dsn, schema=url.schema, pooler=url.pooler)


def _open_third_party(url: ThirdPartyUrl) -> OpenStorage:
    return opener(url.scheme)(url.text)


def _kind(url: StorageUrl) -> str:
    match url:
        case MemoryUrl():
            return "memory"
        case SqliteUrl():
            return "sqlite"
        case PostgresUrl():
            return "postgres"
        case ThirdPartyUrl():
            return "third_party"
        case _:
            assert_never(url)


class _Container(containers.DeclarativeContainer):
    url: providers.Dependency[Any] = providers.Dependency()
    storage: providers.Dependency[Any] = providers.Dependency()
    """Known once it is open."""

    opens_storage: providers.Provider[OpenStorage] = providers.Selector(
        providers.Callable(_kind, url),
        memory=providers.Factory(_open_memory),
        sqlite=providers.Factory(open_sqlite, url.provided.path),
        postgres=providers.Factory(_open_postgres, url),
        third_party=providers.Factory(_open_third_party, url),
    )
    ids: providers.Provider[Ids] = providers.Singleton(RandomIds)
    jitter: providers.Provider[Jitter] = providers.Singleton(RandomJitter)
    wake_up: providers.Provider[WakeUp] = providers.Singleton(LocalWakeUp)
    service: providers.Provider[QueueService] = providers.Singleton(
        QueueService,
        tasks=storage.provided.tasks,
        clock=storage.provided.clock,
        ids=ids,
        jitter=jitter,
        wake_up=wake_up,
    )
    queue: providers.Provider[BatchingQueue] = providers.Singleton(
        BatchingQueue, service, clock=storage.provided.clock, wake_up=wake_up, jitter=jitter
    )
    admin: providers.Provider[TaskAdmin] = providers.Singleton(
        AdminService,
        tasks=storage.provided.tasks,
        queues=storage.provided.queues,
        clock=storage.provided.clock,
        wake_up=wake_up,
    )
    maintenance: providers.Provider[Maintenance] = providers.Singleton(
        MaintenanceService,
        tasks=storage.provided.tasks,
        clock=storage.provided.clock,
        jitter=jitter,
        wake_up=wake_up,
    )
