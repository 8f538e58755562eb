"""The names of things, so that a type checker tells one string from another."""

from __future__ import annotations

from typing import NewType

TaskId = NewType("TaskId", str)
"""A UUIDv7 in its canonical form: 36 characters, lower case."""

LeaseToken = NewType("LeaseToken", str)
"""Names one lease of one task. Opaque; compared whole; 1 to 100 characters."""

WorkerId = NewType("WorkerId", str)
QueueName = NewType("QueueName", str)
TaskType = NewType("TaskType", str)

IdempotencyKey = NewType("IdempotencyKey", str)
"""Chosen by the producer; 1 to 255 bytes of UTF-8, compared as sent."""

JsonText = NewType("JsonText", str)
"""JSON in the one spelling that `json_text.normalise` gives to equal values."""
