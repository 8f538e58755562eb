"""Waiting for whichever comes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable


async def first_of(*awaitables: Awaitable[object], within: float | None = None) -> None:
    """Wait until one of these is done, or for `within` seconds; the others are cancelled."""
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, timeout=within, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future in futures:
            future.cancel()
        await asyncio.gather(*futures, return_exceptions=True)
