import pytest

from leaseq.entrypoints.worker.beating import AWAY_AFTER, MUTE_AFTER, sign_of
from leaseq.entrypoints.worker.ledger import Sign


@pytest.mark.parametrize(
    ("state", "mute", "sign"),
    [
        ("R", 0.0, Sign.ALIVE),
        ("S", MUTE_AFTER - 0.001, Sign.ALIVE),
        ("R", MUTE_AFTER, Sign.MUTE),
        ("", MUTE_AFTER, Sign.MUTE),
        ("D", AWAY_AFTER - 0.001, Sign.MUTE),
        ("R", AWAY_AFTER, Sign.AWAY),
        ("T", 0.0, Sign.AWAY),
        ("t", 0.0, Sign.AWAY),
        ("Z", 0.0, Sign.AWAY),
    ],
)
def test_a_worker_is_judged_by_its_state_and_its_silence(
    state: str, mute: float, sign: Sign
) -> None:
    assert sign_of(state, mute) is sign
