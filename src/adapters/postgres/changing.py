"""Changing tasks, each only if nobody was faster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, LiteralString

import attrs

from ...domain.errors import TaskQueueError
from ...domain.ids import TaskId
from ...domain.storing import Change, Replaced
from ...domain.task import Leased
from ..error_history import to_json
from .binary import Bigints, Texts
from .connections import Connections
from .faults import DRIVER_ERRORS, is_refusal, storage_error
from .locking import LOCKING, outcomes_by_id
from .rows import renewals, states
from .statements import Schema, Statement

# A heartbeat, or a request to cancel. It sets no column that an index holds, and none that may be
# large, so that the new version of the row finds room beside the old one (a HOT update).
_RENEW: Final[LiteralString] = """
    WITH change AS (
        SELECT * FROM unnest(
            %(ids)b, %(old_versions)b, %(versions)b, %(expires_at)b, %(cancel_requested_at)b,
            %(updated_at)b
        ) AS given (id, old_version, version, expires_at, cancel_requested_at, updated_at)
    ),
    {lock},
    renewed AS (
        UPDATE {tasks} AS t SET
            lease_expires_at = held.expires_at,
            cancel_requested_at = held.cancel_requested_at,
            version = held.version,
            updated_at = held.updated_at
        FROM held WHERE {held}
    )
    {outcomes}
"""

# Errors are NULL where they stay as they are: to set them is to write up to 160 kB anew.
_REPLACE: Final[LiteralString] = """
    WITH change AS (
        SELECT * FROM unnest(
            %(ids)b, %(old_versions)b, %(versions)b, %(statuses)b, %(run_after)b, %(attempts)b,
            %(releases)b, %(lease_numbers)b, %(tokens)b, %(holders)b, %(expires_at)b,
            %(cancel_requested_at)b, %(settled_tokens)b, %(settled_as)b, %(updated_at)b,
            %(finished_at)b, %(last_errors)b, %(errors)b, %(results)b
        ) AS given (
            id, old_version, version, status, run_after, attempts,
            releases, lease_number, token, holder, expires_at,
            cancel_requested_at, settled_token, settled_as, updated_at,
            finished_at, last_error, errors, result
        )
    ),
    {lock},
    replaced AS (
        UPDATE {tasks} AS t SET
            version = held.version,
            status = held.status,
            run_after = held.run_after,
            attempts = held.attempts,
            releases = held.releases,
            lease_number = held.lease_number,
            lease_token = held.token,
            lease_owner = held.holder,
            lease_expires_at = held.expires_at,
            cancel_requested_at = held.cancel_requested_at,
            settled_token = held.settled_token,
            settled_as = held.settled_as,
            updated_at = held.updated_at,
            finished_at = held.finished_at,
            last_error = CASE WHEN held.errors IS NULL THEN t.last_error ELSE held.last_error END,
            errors = COALESCE(held.errors::jsonb, t.errors),
            result = held.result::jsonb
        FROM held WHERE {held}
    )
    {outcomes}
"""


class Changing:
    """The `replace` of a `TaskRepository`."""

    def __init__(self, connections: Connections, schema: Schema) -> None:
        self._connections = connections
        self._renew = schema.statement(_RENEW, **LOCKING)
        self._replace = schema.statement(_REPLACE, **LOCKING)

    async def replace(self, changes: Sequence[Change]) -> list[Replaced | TaskQueueError]:
        """Compare and swap; see `TaskRepository.replace`."""
        renewals = [change for change in changes if _only_renews(change)]
        others = [change for change in changes if not _only_renews(change)]
        outcomes: dict[TaskId, Replaced | TaskQueueError] = {}
        for statement, some, parameters in (
            (self._renew, renewals, _renewal_parameters),
            (self._replace, others, _parameters),
        ):
            if some:
                outcomes |= await self._store(statement, sorted(some, key=_id), parameters)
        return [outcomes[_id(change)] for change in changes]

    async def _store(
        self, statement: Statement, changes: Sequence[Change], parameters: _Parameters
    ) -> Mapping[TaskId, Replaced | TaskQueueError]:
        try:
            rows = await self._connections.fetch(statement, parameters(changes), reserved=True)
            return outcomes_by_id(rows)
        except DRIVER_ERRORS as error:
            if not is_refusal(error):
                raise
            if len(changes) == 1:
                return {_id(changes[0]): storage_error(error)}
        outcomes: dict[TaskId, Replaced | TaskQueueError] = {}
        for change in changes:
            outcomes |= await self._store(statement, [change], parameters)
        return outcomes


_Parameters = Callable[[Sequence[Change]], Mapping[str, object]]


def _id(change: Change) -> TaskId:
    return change.old.id


def _only_renews(change: Change) -> bool:
    """Whether only the times of a lease are other than before."""
    old, new = change.old, change.new
    if not (isinstance(old.state, Leased) and isinstance(new.state, Leased)):
        return False
    times = attrs.evolve(old.state.lease, expires_at=new.state.lease.expires_at)
    return new.state.lease == times and new == attrs.evolve(
        old, state=new.state, version=new.version, updated_at=new.updated_at, payload=new.payload
    )


def _renewal_parameters(changes: Sequence[Change]) -> Mapping[str, object]:
    return {
        **renewals([change.new for change in changes]),
        "old_versions": Bigints(change.old.version for change in changes),
    }


def _parameters(changes: Sequence[Change]) -> Mapping[str, object]:
    new_errors = [None if c.new.errors == c.old.errors else c.new for c in changes]
    return {
        **states([change.new for change in changes]),
        "old_versions": Bigints(change.old.version for change in changes),
        "last_errors": Texts(None if new is None else new.last_error for new in new_errors),
        "errors": Texts(None if new is None else to_json(new.errors) for new in new_errors),
    }
