"""What every suite for a storage starts from."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import ClassVar

import pytest
import pytest_asyncio

from ...domain.ports import QueueRepository, Storage, TaskRepository
from ..features import Features

Connect = Callable[[], AbstractAsyncContextManager[Storage]]
"""Opens one more handle on the storage of this test, which begins empty."""


class StorageFixtures:
    """
    Supply a `connect` fixture; or a `storage` fixture, where a storage has one handle only.

    What is supplied is empty at first and not shared between tests.
    """

    features: ClassVar[Features] = Features()
    """What the storage promises; tests of what it does not are skipped."""

    @pytest.fixture
    def connect(self) -> Connect:
        """Return what opens a handle."""
        raise NotImplementedError("an adapter's test class supplies `connect` (or `storage`)")

    @pytest_asyncio.fixture
    async def storage(self, connect: Connect) -> AsyncIterator[Storage]:
        """Open the storage under test."""
        async with connect() as storage:
            yield storage

    def needs_durable(self) -> None:
        """Skip the test where nothing outlasts its handle."""
        if not self.features.durable:
            pytest.skip(f"{type(self).__name__} declares Features(durable=False)")

    def needs_shared(self) -> None:
        """Skip the test where there can be one handle only."""
        if not self.features.shared:
            pytest.skip(f"{type(self).__name__} declares Features(shared=False)")

    @pytest.fixture
    def tasks(self, storage: Storage) -> TaskRepository:
        """Return where tasks are kept."""
        return storage.tasks

    @pytest.fixture
    def queues(self, storage: Storage) -> QueueRepository:
        """Return where settings of queues are kept."""
        return storage.queues
