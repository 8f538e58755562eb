"""How much is measured."""

from __future__ import annotations

from typing import Final

import attrs


@attrs.frozen(kw_only=True)
class Plan:
    """So many of each thing that the whole ends in time."""

    scale: float
    """Of the numbers of tasks that a claim must not mind."""

    claim_rounds: int
    windows: int
    """Of each side, in turn."""

    seconds: float
    """For which one thing is done as fast as it goes."""

    single_calls: int
    tasks: int
    """For workers to run in all."""


FULL: Final = Plan(scale=1, claim_rounds=150, windows=5, seconds=2.0, single_calls=800, tasks=8000)
QUICK: Final = Plan(
    scale=0.1, claim_rounds=25, windows=3, seconds=0.5, single_calls=100, tasks=1000
)
