"""What a course of events asks for: few names, so that calls meet, and times that collide."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, Final, Literal

from hypothesis import strategies as st

from ...domain.requests import Complete, Fail, LeaseRequest, NewTask, Release
from ...domain.task import TERMINAL, Status, TaskError
from ..builders import DAY, HOUR, MICROSECOND, MINUTE, NOON, SECOND
from .stage import PROCESSES

QUEUES: Final = ("emails", "images")
_TYPES: Final = ("send", "resize")
_ZERO: Final = timedelta(0)

_BOOM: Final = TaskError(type="ValueError", message="boom")

_WHENS: Final[list[Mapping[str, Any]]] = [
    {},
    {},
    {"delay": _ZERO},
    {"delay": SECOND},
    {"delay": HOUR},
    {"run_after": NOON - HOUR},
    {"run_after": NOON + SECOND},
    {"run_after": NOON + 2 * DAY},
]
_RETRIES: Final[list[Mapping[str, Any]]] = [
    {},
    {"retry_base": SECOND / 1000, "retry_cap": SECOND / 1000},
    {"retry_base": SECOND, "retry_cap": 4 * SECOND},
]


def _new_task(when: Mapping[str, Any], retry: Mapping[str, Any], **rest: Any) -> NewTask:
    return NewTask(**when, **retry, **rest)


processes: Final = st.integers(0, PROCESSES - 1)
picks: Final = st.integers(0, 9)
"""Which of the tasks or leases there are."""

MOSTLY: Final = 6
"""A pick up to this one is of something that is current, where there is any."""

queues: Final = st.sampled_from(QUEUES)

new_tasks: Final = st.builds(
    _new_task,
    when=st.sampled_from(_WHENS),
    retry=st.sampled_from(_RETRIES),
    queue=queues,
    type=st.sampled_from(_TYPES),
    payload=st.sampled_from(["{}", '{"n": 1}']),
    idempotency_key=st.sampled_from(["", "k-1", "k-2"]),
    allow_different_payload=st.booleans(),
    priority=st.sampled_from([0, 1, 255]),
    max_attempts=st.sampled_from([1, 2, 3, None]),
)

lease_requests: Final = st.builds(
    LeaseRequest,
    worker_id=st.sampled_from(["worker-1", "worker-2", "worker-3"]),
    queues=st.sampled_from([("emails", "images"), ("images", "emails"), ("emails",), ("images",)]),
    types=st.sampled_from([(), (), (), ("send",), ("resize",), ("send", "resize")]),
    lease_duration=st.sampled_from([None, SECOND, HOUR, 12 * HOUR]),
    max_tasks=st.sampled_from([1, 2, 3, 1000]),
    strict_order=st.booleans(),
)

ANYTHING: Final = LeaseRequest(worker_id="worker-1", queues=QUEUES, max_tasks=2)

durations: Final = st.sampled_from([12 * HOUR, HOUR, MINUTE, SECOND])

endings: Final = st.sampled_from(
    [
        partial(Complete),
        partial(Complete, result="[1, 2]"),
        partial(Fail, error=_BOOM),
        partial(Fail, error=_BOOM, retry_after=_ZERO),
        partial(Fail, error=_BOOM, retry_after=MINUTE),
        partial(Fail, error=_BOOM, retry=False),
        partial(Release),
    ]
)

rounds: Final = st.sampled_from(
    [partial(Release), partial(Fail, error=_BOOM, retry_after=_ZERO), None]
)
"""Ways to end an attempt after which the task may be due again at once; None: to undo it."""

spans: Final = st.sampled_from(
    [MICROSECOND, *[SECOND] * 2, 2 * SECOND, 30 * SECOND, MINUTE, *[HOUR] * 2, 3 * DAY, 30 * DAY]
)
edges: Final = st.sampled_from([_ZERO, -MICROSECOND, MICROSECOND])

Verb = Literal["cancel", "requeue", "delete"]
verbs: Final[st.SearchStrategy[Verb]] = st.sampled_from(["cancel", "requeue", "delete"])

FITTING: Final[Mapping[Verb, Collection[Status]]] = {
    "cancel": {Status.QUEUED},
    "requeue": {Status.FAILED, Status.DEAD, Status.CANCELLED},
    "delete": TERMINAL,
}
"""The statuses of tasks with which a verb is most worth trying."""
