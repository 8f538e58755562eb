"""Rows that the tables of every database must refuse or take, in neutral values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

Row = dict[str, Any]

NOON = datetime(2030, 6, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
FIRST_INSTANT = datetime(1970, 1, 1, tzinfo=UTC)
LAST_INSTANT = datetime(9999, 1, 1, tzinfo=UTC) - MICROSECOND

NEW: Row = {"queue": "emails", "type": "send", "payload": "{}"}
LEASED: Row = {
    **NEW,
    "status": "leased",
    "lease_number": 1,
    "lease_token": "T",
    "lease_owner": "worker",
    "lease_expires_at": NOON,
}
ENDED: Row = {**NEW, "status": "dead", "finished_at": NOON}

ACCEPTED = [
    pytest.param(NEW, id="by hand, with nothing but what defaults cannot know"),
    pytest.param(LEASED, id="leased"),
    pytest.param({**LEASED, "cancel_requested_at": NOON}, id="leased, cancel requested"),
    *(pytest.param({**ENDED, "status": s}, id=s) for s in ("failed", "dead", "cancelled")),
    pytest.param({**ENDED, "status": "succeeded", "result": "null"}, id="succeeded"),
    *(
        pytest.param({**NEW, "settled_token": "T", "settled_as": verb}, id=f"{verb} before")
        for verb in ("complete", "fail", "release")
    ),
    pytest.param({**NEW, "priority": 255}, id="highest priority"),
    pytest.param({**ENDED, "attempts": 10, "max_attempts": 10}, id="all attempts used"),
    pytest.param({**NEW, "max_attempts": 1}, id="one attempt allowed"),
    pytest.param({**NEW, "version": 0, "payload_bytes": 0}, id="version and size of zero"),
    pytest.param({**NEW, "retry_base_us": 1, "retry_cap_us": 1}, id="shortest waits, cap at base"),
    *(
        pytest.param({**LEASED, column: FIRST_INSTANT}, id=f"{column} in 1970")
        for column in ("run_after", "created_at", "updated_at", "lease_expires_at")
    ),
    pytest.param({**LEASED, "cancel_requested_at": FIRST_INSTANT}, id="cancelled in 1970"),
    pytest.param({**ENDED, "finished_at": FIRST_INSTANT}, id="ended in 1970"),
    pytest.param({**NEW, "run_after": LAST_INSTANT}, id="due at the end of 9998"),
    *(
        pytest.param({**NEW, column: "n" * size}, id=f"{column} of {size} bytes")
        for column in ("queue", "type", "idempotency_key")
        for size in (1, 255)
    ),
    pytest.param({**NEW, "errors": '[{"attempt": 1}]'}, id="an error"),
]

REFUSED = [
    pytest.param({**NEW, "status": "running"}, id="unknown status"),
    pytest.param({**LEASED, "lease_token": None}, id="leased without token"),
    pytest.param({**LEASED, "lease_owner": None}, id="leased without owner"),
    pytest.param({**LEASED, "lease_expires_at": None}, id="leased without end"),
    pytest.param({**LEASED, "lease_number": 0}, id="leased without number"),
    pytest.param({**NEW, "lease_token": "T"}, id="queued with a token"),
    pytest.param({**NEW, "lease_owner": "worker"}, id="queued with an owner"),
    pytest.param({**NEW, "lease_expires_at": NOON}, id="queued with the end of a lease"),
    pytest.param({**ENDED, "lease_token": "T"}, id="dead with a token"),
    pytest.param({**NEW, "cancel_requested_at": NOON}, id="queued, cancel requested"),
    pytest.param({**ENDED, "finished_at": None}, id="dead without end"),
    pytest.param({**NEW, "finished_at": NOON}, id="queued with an end"),
    pytest.param({**LEASED, "finished_at": NOON}, id="leased with an end"),
    pytest.param({**NEW, "settled_token": "T"}, id="settled without a verb"),
    pytest.param({**NEW, "settled_as": "fail"}, id="a verb without a token"),
    pytest.param({**NEW, "settled_token": "T", "settled_as": "lose"}, id="an unknown verb"),
    pytest.param({**NEW, "priority": 256}, id="priority too high"),
    pytest.param({**NEW, "priority": -1}, id="priority too low"),
    pytest.param({**NEW, "attempts": -1}, id="attempts below zero"),
    pytest.param({**NEW, "attempts": 11, "max_attempts": 10}, id="more attempts than allowed"),
    pytest.param({**NEW, "max_attempts": 0}, id="no attempt allowed"),
    pytest.param({**NEW, "releases": -1}, id="releases below zero"),
    pytest.param({**NEW, "version": -1}, id="version below zero"),
    pytest.param({**NEW, "payload_bytes": -1}, id="size below zero"),
    pytest.param({**NEW, "retry_base_us": 0}, id="no wait before a retry"),
    pytest.param({**NEW, "retry_base_us": 2, "retry_cap_us": 1}, id="cap below base"),
    pytest.param({**NEW, "queue": ""}, id="empty queue"),
    pytest.param({**NEW, "type": ""}, id="empty type"),
    pytest.param({**NEW, "queue": "q" * 256}, id="queue too long for an index"),
    pytest.param({**NEW, "type": "t" * 256}, id="type too long for an index"),
    pytest.param({**NEW, "type": None}, id="no type"),
    pytest.param({**NEW, "idempotency_key": ""}, id="empty key"),
    pytest.param({**NEW, "idempotency_key": "ß" * 128}, id="a key of 256 bytes"),
    pytest.param({**NEW, "run_after": FIRST_INSTANT - MICROSECOND}, id="due before 1970"),
    pytest.param({**NEW, "run_after": LAST_INSTANT + MICROSECOND}, id="due in 9999"),
    pytest.param({**NEW, "run_after": None}, id="due never"),
    pytest.param({**NEW, "created_at": LAST_INSTANT + MICROSECOND}, id="created in 9999"),
    pytest.param({**NEW, "updated_at": LAST_INSTANT + MICROSECOND}, id="updated in 9999"),
    pytest.param({**ENDED, "finished_at": LAST_INSTANT + MICROSECOND}, id="ended in 9999"),
    pytest.param({**LEASED, "lease_expires_at": LAST_INSTANT + MICROSECOND}, id="leased to 9999"),
    pytest.param(
        {**LEASED, "cancel_requested_at": FIRST_INSTANT - MICROSECOND}, id="cancelled before 1970"
    ),
    pytest.param(
        {**LEASED, "cancel_requested_at": LAST_INSTANT + MICROSECOND}, id="cancelled in 9999"
    ),
    pytest.param({**NEW, "payload": "[]"}, id="payload is an array"),
    pytest.param({**NEW, "payload": "null"}, id="payload is null"),
    pytest.param({**NEW, "payload": "{"}, id="payload is no JSON"),
    pytest.param({**NEW, "payload": None}, id="no payload"),
    pytest.param({**NEW, "errors": "{}"}, id="errors are no array"),
    pytest.param({**NEW, "errors": None}, id="no errors"),
    pytest.param({**ENDED, "status": "succeeded", "result": "{"}, id="result is no JSON"),
]

QUEUES_ACCEPTED = [
    pytest.param({"name": "q"}, id="by hand, a name of 1 byte"),
    pytest.param({"name": "q" * 255}, id="a name of 255 bytes"),
    pytest.param({"name": "q", "paused": True}, id="paused"),
    pytest.param({"name": "q", "version": 0}, id="version of zero"),
    pytest.param({"name": "q", "updated_at": FIRST_INSTANT}, id="updated in 1970"),
]

QUEUES_REFUSED = [
    pytest.param({"name": ""}, id="empty name"),
    pytest.param({"name": "q" * 256}, id="a name of 256 bytes"),
    pytest.param({"name": "q", "version": -1}, id="version below zero"),
    pytest.param({"name": "q", "settings": "[]"}, id="settings are no object"),
    pytest.param({"name": "q", "state": "[]"}, id="a state that is no object"),
    pytest.param({"name": "q", "updated_at": FIRST_INSTANT - MICROSECOND}, id="before 1970"),
    pytest.param({"name": "q", "updated_at": LAST_INSTANT + MICROSECOND}, id="updated in 9999"),
]
