"""What every suite for a storage starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

import pytest
import pytest_asyncio

from ...domain.ports import QueueRepository, Storage, TaskRepository

Connect = Callable[[], AbstractAsyncContextManager[Storage]]
"""Opens one more handle on the storage of this test, which begins empty."""


class StorageFixtures:
    """
    Supply a `connect` fixture; or a `storage` fixture, where a storage has one handle only.

    What is supplied is empty at first and not shared between tests.
    """

    shared_by_handles: ClassVar[bool] = True
    """Whether a second handle from `connect`, open at the same time, shows the same tasks."""

    survives_reopen: ClassVar[bool] = True
    """Whether tasks are still there after the last handle was closed."""

    @pytest.fixture
    def connect(self) -> Connect:
        """Return what opens a handle."""
        raise NotImplementedError("an adapter's test class supplies `connect` (or `storage`)")

    @pytest_asyncio.fixture
    async def storage(self, connect: Connect) -> AsyncIterator[Storage]:
        """Open the storage under test."""
        async with connect() as storage:
            yield storage

    @pytest.fixture
    def tasks(self, storage: Storage) -> TaskRepository:
        """Return where tasks are kept."""
        return storage.tasks

    @pytest.fixture
    def queues(self, storage: Storage) -> QueueRepository:
        """Return where settings of queues are kept."""
        return storage.queues
