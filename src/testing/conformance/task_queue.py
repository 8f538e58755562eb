"""The suite for `TaskQueue`, `TaskAdmin` and `Maintenance`, put together."""

from __future__ import annotations

import pytest

from .cancel import CancelContract
from .conservation import ConservationContract
from .enqueue import EnqueueContract, IdempotencyContract
from .fencing import LateContract, RepeatContract
from .heartbeat import HeartbeatContract
from .lease import LeaseContract, QueueTurnContract, ReplySizeContract
from .operator_batch import OperatorBatchContract
from .overview import ListContract, QueuesContract
from .refusals import RefusalContract
from .release import ExpiryContract, ReleaseContract, SettleBatchContract
from .requeue import DeleteTasksContract, RequeueContract, RetentionContract
from .settle import CompleteContract, ErrorTextContract, FailContract
from .task_ids import TaskIdContract
from .two_processes import TwoProcessesContract


class TaskQueueConformance(
    EnqueueContract,
    IdempotencyContract,
    TaskIdContract,
    RefusalContract,
    LeaseContract,
    QueueTurnContract,
    ReplySizeContract,
    TwoProcessesContract,
    HeartbeatContract,
    CompleteContract,
    FailContract,
    ErrorTextContract,
    ReleaseContract,
    ExpiryContract,
    SettleBatchContract,
    RepeatContract,
    LateContract,
    CancelContract,
    RequeueContract,
    DeleteTasksContract,
    OperatorBatchContract,
    RetentionContract,
    ListContract,
    QueuesContract,
    ConservationContract,
):
    """
    Inherit this, and override the fixtures of `QueueFixtures` that differ.

    The whole test class of a client and its server reads

        class TestClient(TaskQueueConformance):
            @pytest_asyncio.fixture
            async def client(self, services: Services) -> AsyncIterator[Client]:
                async with serve(services) as address, Client.connect(address) as client:
                    yield client

            @pytest.fixture
            def queue(self, client: Client) -> TaskQueue:
                return client

            @pytest.fixture
            def admin(self, client: Client) -> TaskAdmin:
                return client
    """

    pytestmark = pytest.mark.asyncio
