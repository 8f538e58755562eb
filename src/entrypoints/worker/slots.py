"""How many more tasks a worker can take."""

from __future__ import annotations

import asyncio


class Slots:
    """Counts what is free of `size` slots. For one event loop."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free = size
        self.some_free = asyncio.Event()
        """Set while at least one slot is free."""

        self.all_free = asyncio.Event()
        """Set while nothing is held."""

        self._update()

    def take(self) -> None:
        """Fill a slot."""
        self.free -= 1
        self._update()

    def give_back(self) -> None:
        """Free a slot."""
        self.free += 1
        self._update()

    def _update(self) -> None:
        _set(self.some_free, to=self.free > 0)
        _set(self.all_free, to=self.free == self.size)


def _set(event: asyncio.Event, *, to: bool) -> None:
    if to:
        event.set()
    else:
        event.clear()
