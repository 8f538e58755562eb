"""Names and luck from the operating system."""

from __future__ import annotations

import random
import secrets

import uuid_utils

from ..domain.ids import LeaseToken, TaskId


class RandomIds:
    """Ids that sort by time of making, and tokens of 128 random bits."""

    def task_id(self) -> TaskId:
        """Return a new UUIDv7."""
        return TaskId(str(uuid_utils.uuid7()))

    def lease_token(self) -> LeaseToken:
        """Return 22 characters that cannot be guessed."""
        return LeaseToken(secrets.token_urlsafe(16))


class RandomJitter:
    """Luck from the process's own generator."""

    def draw(self) -> float:
        """Return a number from [0, 1)."""
        return random.random()  # noqa: S311, TID251  spreading load needs no secrecy
