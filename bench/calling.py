"""Callers that do one thing over and over."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter


async def rate(callers: int, seconds: float, call: Callable[[], Awaitable[int]]) -> float:
    """
    Return how many things a second `callers` get done at once.

    Args:
        call: does one call, and returns how many things it did; 0 ends its caller.
    """
    began = perf_counter()
    ends_at = began + seconds

    async def caller() -> int:
        done = 0
        while perf_counter() < ends_at:
            more = await call()
            if not more:
                break
            done += more
        return done

    done = sum(await asyncio.gather(*(caller() for _ in range(callers))))
    return done / (perf_counter() - began)


async def latencies(times: int, call: Callable[[], Awaitable[int]]) -> list[float]:
    """Return the seconds that each of `times` calls took, one after the other."""
    taken = []
    for _ in range(times):
        began = perf_counter()
        await call()
        taken.append(perf_counter() - began)
    return taken
