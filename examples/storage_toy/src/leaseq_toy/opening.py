"""Opening the storage, by path or by URL."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import unquote

import attrs

from leaseq.storage import Clock, StorageError, SystemClock

from .log import Log
from .repository import LogThread, ToyQueueRepository, ToyTaskRepository

_MEBIBYTE: Final = 1024 * 1024


@attrs.frozen(kw_only=True)
class ToyStorage:
    """A `Storage` in one file, for one process at a time."""

    tasks: ToyTaskRepository
    queues: ToyQueueRepository
    clock: Clock
    _thread: LogThread

    async def tend(self) -> None:
        """Compact the log if it has grown."""
        await self._thread.run(self._thread.log.compact_if_grown)


@asynccontextmanager
async def open_toy(
    path: str | os.PathLike[str], *, compact_at: int = _MEBIBYTE
) -> AsyncIterator[ToyStorage]:
    """
    Open the log at `path`, a new one where there is none, until the block ends.

    Args:
        path: relative to the working directory of now.
        compact_at: bytes below which the file is never compacted.

    Raises:
        StorageUnavailableError: another process has it open.
        StorageError: it cannot be used, saying why.
    """
    thread = LogThread(Log(Path(path), compact_at=compact_at))
    try:
        await thread.run(thread.log.open)
        yield ToyStorage(
            tasks=ToyTaskRepository(thread),
            queues=ToyQueueRepository(thread),
            clock=SystemClock(),
            thread=thread,
        )
    finally:
        thread.end()


def open_url(url: str) -> AbstractAsyncContextManager[ToyStorage]:
    """
    Open `toy:///FILE` (relative) or `toy:////FILE` (absolute); see `open_toy`.

    Raises:
        StorageError: the URL names no file.
    """
    _, _, rest = url.partition("://")
    path = unquote(rest.removeprefix("/"))
    if not rest.startswith("/") or not path.strip("/"):
        raise StorageError("a toy URL is toy:///FILE, or toy:////FILE from the root on")
    return open_toy(path)
