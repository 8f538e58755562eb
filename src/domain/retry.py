"""How long a task waits after a failed attempt. Arithmetic on whole microseconds."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import attrs

from .limits import (
    DEFAULT_RETRY_BASE,
    DEFAULT_RETRY_CAP,
    MAX_RETRY_BASE,
    MAX_RETRY_CAP,
    MIN_RETRY_BASE,
)

_MICROSECOND: Final = timedelta(microseconds=1)
_MAX_EXPONENT: Final = 42
"""1 ms doubled this often is past any cap; more would only make large integers."""


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """Exponential backoff between failed attempts: doubling from `base`, at most `cap`."""

    base: timedelta = attrs.field(default=DEFAULT_RETRY_BASE)
    """1 ms to 1 day."""

    cap: timedelta = attrs.field(default=DEFAULT_RETRY_CAP)
    """`base` to 30 days; jitter comes on top."""

    @base.validator
    def _base_is_bounded(self, _: object, base: timedelta) -> None:
        if not MIN_RETRY_BASE <= base <= MAX_RETRY_BASE:
            raise ValueError(f"base must be from 1 ms to 1 day, not {base}")

    @cap.validator
    def _cap_is_bounded(self, _: object, cap: timedelta) -> None:
        if not self.base <= cap <= MAX_RETRY_CAP:
            raise ValueError(f"cap must be from base to 30 days, not {cap}")

    def delay(self, attempts: int, *, jitter: float) -> timedelta:
        """
        Return how long to wait when `attempts` attempts have ended.

        With d = min(cap, base * 2**attempts) the wait lies in [d, 1.5 d).

        Args:
            attempts: attempts ended so far, this one included; 1 after the first.
            jitter: a draw from [0, 1); adds up to half of d.

        Source:
            M. Brooker, "Exponential Backoff and Jitter", AWS Architecture Blog,
            2015 (here jitter is added to a fixed floor, so no wait is short).
        """
        base, cap = self.base // _MICROSECOND, self.cap // _MICROSECOND
        floor = min(cap, base << min(attempts, _MAX_EXPONENT))
        # The largest draw, 1 - 2**-53, never rounds the product up to half of the floor.
        return (floor + int(jitter * (floor / 2))) * _MICROSECOND
