"""Tells of a storage that fails calls: once when it begins, and once when it is over."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from ...domain.errors import StorageError

_log = logging.getLogger(__name__)

_OVER_AFTER: Final = 5.0
"""Seconds without a failure, once every method that failed has succeeded."""

_SURELY_OVER_AFTER: Final = 60.0
"""Seconds without a failure, though a method that failed may not have been called since."""


class StorageTrouble:
    """
    What the outcomes of calls tell of the storage under them.

    A full or read-only disk answers reads, so a success of one method does not end what
    another one met.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._failing: set[str] = set()
        self._told: set[str] = set()
        self._calls = 0
        self._began = 0.0
        self._latest = 0.0

    def failed(self, method: str, error: StorageError) -> None:
        """Take note that a call failed; what is new about it is logged."""
        self._latest = self._monotonic()
        if not self._calls:
            self._began = self._latest
        self._calls += 1
        self._failing.add(method)
        words = str(error)
        if words not in self._told:
            self._told.add(words)
            _log.warning("storage fails calls", extra={"error": words, "method": method})

    def succeeded(self, method: str) -> None:
        """Take note that a call was answered; that this ends the trouble is logged."""
        if not self._calls:
            return
        self._failing.discard(method)
        now = self._monotonic()
        if now - self._latest < (_SURELY_OVER_AFTER if self._failing else _OVER_AFTER):
            return
        seconds = round(self._latest - self._began)
        _log.info(
            "storage serves calls again", extra={"failed_calls": self._calls, "seconds": seconds}
        )
        self._calls = 0
        self._failing.clear()
        self._told.clear()
