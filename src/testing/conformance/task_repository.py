"""The suite for `TaskRepository`, put together."""

from __future__ import annotations

import pytest

from .add import AddContract, AddKeyContract, AddRaceContract
from .claim import ClaimContract
from .claim_choice import ClaimBytesContract, ClaimFilterContract
from .claim_race import ClaimRaceContract
from .delete import DeleteContract, QuarantineContract
from .expired import ExpiredContract
from .handles import HandlesContract, OneHandleContract, ReopenContract
from .next_due import NextDueContract
from .prune import PruneContract
from .replace import ReplaceContract
from .replace_batch import ReplaceBatchContract, ReplaceRaceContract
from .round_trip import RoundTripContract
from .search import SearchContract
from .stats import StatsContract


class TaskRepositoryConformance(
    RoundTripContract,
    AddContract,
    AddKeyContract,
    AddRaceContract,
    ClaimContract,
    ClaimFilterContract,
    ClaimBytesContract,
    ClaimRaceContract,
    ReplaceContract,
    ReplaceBatchContract,
    ReplaceRaceContract,
    DeleteContract,
    QuarantineContract,
    ExpiredContract,
    NextDueContract,
    SearchContract,
    StatsContract,
    PruneContract,
    HandlesContract,
    OneHandleContract,
    ReopenContract,
):
    """
    Inherit this and supply `connect` or `storage`.

    A whole test class of an adapter reads

        class TestSqliteTasks(TaskRepositoryConformance):
            @pytest.fixture
            def connect(self, tmp_path: Path) -> Connect:
                return partial(open_sqlite, tmp_path / "tasks.db")

    A storage that promises less sets `features`; see `Features`.
    """

    pytestmark = pytest.mark.asyncio
