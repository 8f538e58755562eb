import attrs
import pytest

from leaseq.domain.ids import JsonText
from leaseq.domain.requests import Fail
from leaseq.domain.views import leased_view
from leaseq.entrypoints.worker.executors import attempt_blocking
from leaseq.entrypoints.worker.handlers import Handler
from leaseq.entrypoints.worker.held import Held
from leaseq.testing import NOON, a_lease, a_task


@pytest.mark.parametrize("payload", ["no JSON", '{"a": ' * 100_000], ids=["words", "too deep"])
def test_a_payload_that_cannot_be_read_fails_the_attempt_for_good(payload: str) -> None:
    leased = leased_view(a_task(), a_lease(), now=NOON)
    broken = attrs.evolve(leased, task=attrs.evolve(leased.task, payload=JsonText(payload)))

    settlement = attempt_blocking(Handler.of("send", lambda _: None), Held.of(broken))

    assert isinstance(settlement, Fail)
    assert not settlement.retry
    assert settlement.error.type == "UnreadablePayloadError"
