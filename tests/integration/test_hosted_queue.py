from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import timedelta
from typing import Any

import attrs
import pytest

from leaseq.domain.ports import Maintenance, TaskAdmin, TaskQueue
from leaseq.entrypoints.host import Host, hosted_async
from leaseq.entrypoints.hosted import Awaiting, HostedTaskAdmin, HostedTaskQueue
from leaseq.entrypoints.urls import MemoryUrl
from leaseq.testing import RealTime, TaskQueueConformance, Time


@attrs.frozen
class HostedMaintenance:
    """What a host does now and then, done when a test wants it."""

    host: Host

    async def reap(self) -> int:
        return await self._done(self.host.opened.result().maintenance.reap())

    async def prune(self) -> int:
        return await self._done(self.host.opened.result().maintenance.prune())

    async def _done(self, work: Coroutine[Any, Any, int]) -> int:
        return await asyncio.wrap_future(self.host.submit(work))


class TestQueueOfAHost(TaskQueueConformance):
    manual_time = False

    @pytest.fixture
    def time(self) -> Time:
        return RealTime()

    @pytest.fixture
    async def host(self) -> AsyncIterator[Host]:
        async with hosted_async(MemoryUrl(name="conformance")) as host:
            yield host

    @pytest.fixture
    def queue(self, host: Host) -> TaskQueue:
        return HostedTaskQueue(host, Awaiting(deadline=timedelta(seconds=30)))

    @pytest.fixture
    def admin(self, host: Host) -> TaskAdmin:
        return HostedTaskAdmin(host, Awaiting(deadline=timedelta(seconds=30)))

    @pytest.fixture
    def maintenance(self, host: Host) -> Maintenance:
        return HostedMaintenance(host)
