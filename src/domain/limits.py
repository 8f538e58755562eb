"""Every bound and default that a caller can meet, in one place."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

NAME_PATTERN: Final = r"[A-Za-z0-9._:-]{1,100}"
"""Queues, types and worker ids."""

DEFAULT_QUEUE: Final = "default"

MAX_KEY_BYTES: Final = 255
MAX_TOKEN_CHARACTERS: Final = 100

MAX_JSON_BYTES: Final = 1024 * 1024
"""Of a payload or a result, in UTF-8, in the spelling in which it is stored."""
MAX_JSON_DEPTH: Final = 64
MAX_NUMBER_DIGITS: Final = 1000

MIN_PRIORITY: Final = 0
MAX_PRIORITY: Final = 255

MAX_BATCH: Final = 1000
"""Tasks, ids, leases or settlements in one call."""
MAX_NAMES_PER_LEASE: Final = 100
"""Queues, and types, in one Lease."""

MAX_MESSAGE_TEXT_BYTES: Final = 3 * 1024 * 1024
"""
Payloads, results and errors in one message. The other fields of an item take less than 1 kB,
so a message of 1000 items stays under the 4 MiB that gRPC accepts by default.
"""
MAX_LEASE_PAYLOAD_BYTES: Final = MAX_MESSAGE_TEXT_BYTES
"""Payload in one Lease reply."""

MAX_DELAY: Final = timedelta(days=365)
"""How far ahead `delay`, `run_after` and `retry_after` may lie."""

MIN_LEASE: Final = timedelta(seconds=1)
MAX_LEASE: Final = timedelta(hours=12)
DEFAULT_LEASE: Final = timedelta(seconds=30)
MAX_WAIT: Final = timedelta(seconds=30)
"""A longer `wait` in a Lease is cut to this."""

MIN_ATTEMPTS: Final = 1
MAX_ATTEMPTS: Final = 1000
DEFAULT_ATTEMPTS: Final = 10

MIN_RETRY_BASE: Final = timedelta(milliseconds=1)
MAX_RETRY_BASE: Final = timedelta(days=1)
MAX_RETRY_CAP: Final = timedelta(days=30)
DEFAULT_RETRY_BASE: Final = timedelta(seconds=2)
DEFAULT_RETRY_CAP: Final = timedelta(hours=1)

FREE_RELEASES: Final = 10
"""Releases of one cycle that cost no attempt."""

MAX_ERRORS_KEPT: Final = 10
MAX_ERROR_BYTES: Final = 16 * 1024
MAX_ERROR_TYPE_BYTES: Final = 256
MAX_ERROR_MESSAGE_BYTES: Final = 8 * 1024

COUNTED_EXACTLY: Final = 10_000
"""Depths above this are told as "at least"."""
