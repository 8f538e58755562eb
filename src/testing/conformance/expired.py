"""Looking for leases that have ended."""

from __future__ import annotations

from typing import Final

import pytest

from ...domain.ids import QueueName
from ...domain.ports import TaskRepository
from ...domain.storing import Change, Found
from ...domain.task import Cancelled, Dead, Failed, Leased, Queued, State, Succeeded
from ..builders import (
    DAY,
    EMAILS,
    HOUR,
    IMAGES,
    MICROSECOND,
    MINUTE,
    NOON,
    SECOND,
    a_demand,
    a_task,
    leased_until,
)
from .replace import changed
from .round_trip import without_payload

EXPIRED_AT_NOON: Final[dict[str, tuple[State, bool]]] = {
    "ended long ago": (leased_until(NOON - 30 * DAY), True),
    "ended a microsecond ago": (leased_until(NOON - MICROSECOND), True),
    "ends now": (leased_until(NOON), True),
    "ends in a microsecond": (leased_until(NOON + MICROSECOND), False),
    "ended, cancel requested": (leased_until(NOON, cancel_requested_at=NOON - MINUTE), True),
    "queued": (Queued(), False),
    "succeeded": (Succeeded(at=NOON - HOUR), False),
    "failed": (Failed(at=NOON - HOUR), False),
    "dead": (Dead(at=NOON - HOUR), False),
    "cancelled": (Cancelled(at=NOON - HOUR), False),
}


class ExpiredContract:
    """`expired` tells leases that have ended, to the microsecond."""

    @pytest.mark.parametrize(
        ("state", "expired"), EXPIRED_AT_NOON.values(), ids=EXPIRED_AT_NOON.keys()
    )
    async def test_a_lease_is_expired_from_its_end_on(
        self, tasks: TaskRepository, state: State, *, expired: bool
    ) -> None:
        task = a_task(state=state, payload='{"n": 1}')
        await tasks.add([task])

        found = await tasks.expired(now=NOON, limit=10)

        assert found == Found(tasks=(without_payload(task),) if expired else ())

    async def test_leases_of_all_queues_are_told(self, tasks: TaskRepository) -> None:
        ended = [a_task(state=leased_until(NOON), queue=queue) for queue in (EMAILS, IMAGES)]
        await tasks.add(ended)

        found = await tasks.expired(now=NOON, limit=10)

        assert {task.id for task in found.tasks} == {task.id for task in ended}

    async def test_leases_of_a_paused_or_unknown_type_of_queue_are_told(
        self, tasks: TaskRepository
    ) -> None:
        ended = a_task(state=leased_until(NOON), queue=QueueName("nobody-serves-this"))
        await tasks.add([ended])

        found = await tasks.expired(now=NOON, limit=1)

        assert [task.id for task in found.tasks] == [ended.id]

    async def test_no_more_than_the_limit_are_told(self, tasks: TaskRepository) -> None:
        ended = [a_task(state=leased_until(NOON)) for _ in range(5)]
        await tasks.add(ended)

        found = await tasks.expired(now=NOON, limit=3)

        assert len({task.id for task in found.tasks}) == 3

    async def test_live_leases_do_not_take_the_place_of_expired_ones(
        self, tasks: TaskRepository
    ) -> None:
        live = [a_task(state=leased_until(NOON + SECOND)) for _ in range(30)]
        ended = [a_task(state=leased_until(NOON)) for _ in range(3)]
        await tasks.add([*live, *ended])

        found = await tasks.expired(now=NOON, limit=3)

        assert {task.id for task in found.tasks} == {task.id for task in ended}

    async def test_a_lease_that_was_renewed_is_not_told(self, tasks: TaskRepository) -> None:
        task = a_task(state=leased_until(NOON))
        await tasks.add([task])
        renewed = changed(task, leased_until(NOON + SECOND))
        await tasks.replace([Change(old=task, new=renewed)])

        at_noon = await tasks.expired(now=NOON, limit=10)
        later = await tasks.expired(now=NOON + SECOND, limit=10)

        assert at_noon == Found()
        assert later == Found(tasks=(without_payload(renewed),))

    async def test_what_was_claimed_expires(self, tasks: TaskRepository) -> None:
        task = a_task()
        await tasks.add([task])
        [claimed] = (await tasks.claim(a_demand(), now=NOON)).tasks
        assert isinstance(claimed.state, Leased)

        found = await tasks.expired(now=claimed.state.lease.expires_at, limit=10)

        assert found == Found(tasks=(without_payload(claimed),))
