from __future__ import annotations

from typing import Any

import pytest

from leaseq.adapters.postgres import migrator


@pytest.mark.parametrize(
    ("given", "passed_over"),
    [
        ({"host": "a,b"}, True),
        ({"hostaddr": "10.0.0.1,10.0.0.2"}, True),
        ({"host": "a"}, False),
        ({}, False),
    ],
    ids=["hosts", "addresses", "one host", "none"],
)
def test_of_several_hosts_a_standby_is_passed_over(
    given: dict[str, Any], *, passed_over: bool
) -> None:
    parameters = migrator._several(given)  # noqa: SLF001  no two servers to try it on

    assert ("target_session_attrs" in parameters) == passed_over
