"""How a server fares, as it is told to whoever asks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any

import attrs


@attrs.frozen(kw_only=True)
class Check:
    """One thing that must hold for a server to be ready."""

    name: str
    fault: str | None = None
    """Why it does not hold; None: it does."""

    age: timedelta | None = None
    """Of the last time that it was seen to work."""

    limit: timedelta | None = None
    """The age beyond which it does not hold; None: no age is too high."""


Checks = Callable[[], Awaitable[Sequence[Check]]]


def readiness(checks: Sequence[Check]) -> dict[str, Any]:
    """Return what `/readyz` says."""
    return {
        "ready": all(check.fault is None for check in checks),
        "failed": [check.name for check in checks if check.fault is not None],
        "checks": [
            {
                "name": check.name,
                "ok": check.fault is None,
                "fault": check.fault,
                "age_seconds": _seconds(check.age),
                "limit_seconds": _seconds(check.limit),
            }
            for check in checks
        ],
    }


def _seconds(span: timedelta | None) -> float | None:
    return None if span is None else round(span.total_seconds(), 3)
