from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import attrs
import pytest

from leaseq.domain import lifecycle
from leaseq.domain.errors import (
    LeaseLostError,
    LostReason,
    TaskFinishedError,
    TaskNotDeadError,
    TaskNotFinishedError,
)
from leaseq.domain.ids import JsonText, LeaseToken, QueueName, TaskId, TaskType, WorkerId
from leaseq.domain.lease import Lease
from leaseq.domain.retry import RetryPolicy
from leaseq.domain.task import (
    AttemptError,
    Cancelled,
    Dead,
    Failed,
    Leased,
    Queued,
    Settled,
    State,
    Status,
    Succeeded,
    Task,
    TaskError,
    Verb,
    is_due,
    leasing_order,
    unreadable_row,
)

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
SECOND = timedelta(seconds=1)
MINE, OTHER = LeaseToken("mine"), LeaseToken("other")
WORKER = WorkerId("worker-1")
BOOM = TaskError(type="ValueError", message="boom", traceback="line 1")


def a_lease(token: LeaseToken = MINE, *, until: datetime = NOON + 30 * SECOND) -> Lease:
    return Lease(token=token, holder=WORKER, expires_at=until)


def held(
    token: LeaseToken = MINE,
    *,
    until: datetime = NOON + 30 * SECOND,
    cancel_requested_at: datetime | None = None,
) -> Leased:
    return Leased(lease=a_lease(token, until=until), cancel_requested_at=cancel_requested_at)


def a_task(
    state: State,
    *,
    attempts: int = 0,
    max_attempts: int = 3,
    releases: int = 0,
    errors: tuple[AttemptError, ...] = (),
    settled: Settled | None = None,
    run_after: datetime = NOON - SECOND,
) -> Task:
    return Task(
        id=TaskId("01890a5d-ac96-774b-bcce-b302099a8057"),
        queue=QueueName("emails"),
        type=TaskType("send"),
        payload=JsonText("{}"),
        payload_bytes=2,
        fingerprint="0" * 64,
        max_attempts=max_attempts,
        retry=RetryPolicy(base=SECOND, cap=timedelta(minutes=1)),
        state=state,
        run_after=run_after,
        attempts=attempts,
        releases=releases,
        lease_number=7,
        errors=errors,
        settled=settled,
        version=41,
        created_at=NOON - timedelta(hours=1),
        updated_at=NOON - timedelta(minutes=1),
    )


def an_error(attempt: int) -> AttemptError:
    return AttemptError(attempt=attempt, worker_id=WORKER, at=NOON, type="E", message=str(attempt))


def complete(task: Task, token: LeaseToken = MINE, *, now: datetime = NOON) -> Task:
    return lifecycle.complete(task, token=token, result=JsonText("[1]"), now=now)


def fail(
    task: Task,
    token: LeaseToken = MINE,
    *,
    retry: bool = True,
    retry_after: timedelta | None = None,
    now: datetime = NOON,
) -> Task:
    return lifecycle.fail(
        task, token=token, error=BOOM, retry=retry, retry_after=retry_after, jitter=0.5, now=now
    )


def release(task: Task, token: LeaseToken = MINE, *, now: datetime = NOON) -> Task:
    return lifecycle.release(task, token=token, jitter=0.5, now=now)


def heartbeat(task: Task, token: LeaseToken = MINE, *, now: datetime = NOON) -> Task:
    return lifecycle.heartbeat(task, token=token, duration=60 * SECOND, now=now)


def expire(task: Task, *, now: datetime = NOON) -> Task:
    return lifecycle.expire(task, jitter=0.5, now=now)


ENDS: dict[str, Callable[[Task], Task]] = {
    "complete": complete,
    "fail": fail,
    "release": release,
    "heartbeat": heartbeat,
}

# Each state with whether it is due at NOON, at and one microsecond either side of its edge.
DUE_EDGES: list[tuple[State, datetime, bool]] = [
    (Queued(), NOON - MICROSECOND, True),
    (Queued(), NOON, True),
    (Queued(), NOON + MICROSECOND, False),
    (held(until=NOON - MICROSECOND), NOON - SECOND, False),
    (held(until=NOON), NOON - SECOND, False),
    (held(until=NOON + MICROSECOND), NOON - SECOND, False),
    (Succeeded(at=NOON), NOON - SECOND, False),
    (Failed(at=NOON), NOON - SECOND, False),
    (Dead(at=NOON), NOON - SECOND, False),
    (Cancelled(at=NOON), NOON - SECOND, False),
]


@pytest.mark.parametrize(("state", "run_after", "due"), DUE_EDGES)
def test_a_task_is_due_once_queued_and_its_time_has_come(
    state: State, run_after: datetime, *, due: bool
) -> None:
    assert is_due(a_task(state, run_after=run_after), NOON) == due


def test_tasks_are_leased_by_priority_then_time_then_id() -> None:
    low = a_task(Queued())
    later = attrs.evolve(low, run_after=low.run_after + MICROSECOND)
    twin = attrs.evolve(low, id=TaskId("01890a5d-ac96-774b-bcce-b302099a8058"))
    high = attrs.evolve(later, priority=1)

    assert sorted([later, twin, high, low], key=leasing_order) == [high, low, twin, later]


@pytest.mark.parametrize(
    ("until", "expired"),
    [(NOON - MICROSECOND, True), (NOON, True), (NOON + MICROSECOND, False)],
)
def test_the_end_is_outside_of_a_lease(until: datetime, *, expired: bool) -> None:
    assert a_lease(until=until).expired(NOON) == expired


def test_moments_must_be_utc() -> None:
    with pytest.raises(ValueError, match="expires_at must be a datetime in UTC"):
        a_lease(until=datetime(2026, 1, 1))  # noqa: DTZ001


def test_a_lease_gives_a_due_task_to_its_holder() -> None:
    task = a_task(Queued(), run_after=NOON)

    leased = lifecycle.lease(task, grant=a_lease(), now=NOON)

    assert leased == attrs.evolve(
        task, state=Leased(lease=a_lease()), lease_number=8, version=42, updated_at=NOON
    )
    assert leased.status is Status.LEASED


def test_a_task_that_is_not_due_is_not_leased() -> None:
    with pytest.raises(ValueError, match="is not due"):
        lifecycle.lease(a_task(Queued(), run_after=NOON + MICROSECOND), grant=a_lease(), now=NOON)


def test_a_heartbeat_extends_the_lease_from_now() -> None:
    task = a_task(held())

    extended = heartbeat(task)

    assert extended == attrs.evolve(
        task, state=held(until=NOON + 60 * SECOND), version=42, updated_at=NOON
    )


@pytest.mark.parametrize("longer", [timedelta(0), MICROSECOND])
def test_a_heartbeat_never_shortens_a_lease(longer: timedelta) -> None:
    task = a_task(held(until=NOON + 60 * SECOND + longer))

    assert heartbeat(task) is task


def test_a_heartbeat_keeps_the_wish_to_cancel() -> None:
    extended = heartbeat(a_task(held(cancel_requested_at=NOON - SECOND)))

    assert extended.state == held(until=NOON + 60 * SECOND, cancel_requested_at=NOON - SECOND)


def test_complete_ends_the_attempt() -> None:
    task = a_task(held(), attempts=1)

    done = complete(task)

    assert done == attrs.evolve(
        task,
        state=Succeeded(at=NOON, result=JsonText("[1]")),
        attempts=2,
        settled=Settled(token=MINE, verb=Verb.COMPLETE),
        version=42,
        updated_at=NOON,
    )


def test_a_cancel_comes_too_late_for_a_complete() -> None:
    done = complete(a_task(held(cancel_requested_at=NOON)))

    assert done.status is Status.SUCCEEDED


def test_fail_queues_the_task_again_after_a_wait() -> None:
    task = a_task(held())

    failed = fail(task)

    error = AttemptError(
        attempt=1,
        worker_id=WORKER,
        at=NOON,
        type="ValueError",
        message="boom",
        traceback="line 1",
    )
    assert failed == attrs.evolve(
        task,
        state=Queued(),
        attempts=1,
        run_after=NOON + 2.5 * SECOND,
        errors=(error,),
        settled=Settled(token=MINE, verb=Verb.FAIL),
        version=42,
        updated_at=NOON,
    )
    assert failed.last_error == "ValueError: boom"


def test_the_last_failed_attempt_kills_the_task() -> None:
    task = a_task(held(), attempts=2, errors=(an_error(1), an_error(2)))

    dead = fail(task, retry_after=SECOND)

    assert dead.state == Dead(at=NOON)
    assert dead.attempts == 3
    assert [error.attempt for error in dead.errors] == [1, 2, 3]
    assert dead.settled == Settled(token=MINE, verb=Verb.FAIL)
    assert dead.run_after == task.run_after


def test_the_attempt_before_the_last_does_not() -> None:
    assert fail(a_task(held(), attempts=1)).state == Queued()


def test_a_failure_that_is_not_worth_a_retry_gives_the_task_up() -> None:
    failed = fail(a_task(held()), retry=False)

    assert failed.state == Failed(at=NOON)
    assert failed.attempts == 1
    assert failed.last_error == "ValueError: boom"
    assert failed.settled == Settled(token=MINE, verb=Verb.FAIL)


def test_a_failure_may_say_how_long_to_wait() -> None:
    failed = fail(a_task(held()), retry_after=timedelta(0))

    assert failed.run_after == NOON


def test_ten_errors_are_kept() -> None:
    task = a_task(
        held(), attempts=10, max_attempts=20, errors=tuple(an_error(n) for n in range(1, 11))
    )

    failed = fail(task)

    assert [error.attempt for error in failed.errors] == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_errors_are_cleaned() -> None:
    failed = lifecycle.fail(
        a_task(held()),
        token=MINE,
        error=TaskError(type="", message="a\x00b", traceback="\ud800"),
        jitter=0,
        now=NOON,
    )

    assert (failed.errors[0].type, failed.errors[0].message) == ("Error", "a\ufffdb")
    assert failed.errors[0].traceback == "\ufffd"


def test_release_gives_the_task_back_with_its_place() -> None:
    task = a_task(held(), attempts=1)

    released = release(task)

    assert released == attrs.evolve(
        task,
        state=Queued(),
        releases=1,
        settled=Settled(token=MINE, verb=Verb.RELEASE),
        version=42,
        updated_at=NOON,
    )


def test_giving_back_what_was_never_delivered_is_no_release() -> None:
    given_back = lifecycle.release(
        a_task(held(), releases=10), token=MINE, undelivered=True, jitter=0.5, now=NOON
    )

    assert (given_back.status, given_back.attempts, given_back.releases) == (Status.QUEUED, 0, 10)


def test_the_tenth_release_is_free() -> None:
    released = release(a_task(held(), releases=9))

    assert (released.attempts, released.releases) == (0, 10)
    assert released.run_after == NOON - SECOND


def test_the_eleventh_release_counts_as_a_failure() -> None:
    released = release(a_task(held(), releases=10))

    assert released.state == Queued()
    assert (released.attempts, released.releases) == (1, 11)
    assert released.run_after == NOON + 2.5 * SECOND
    assert released.last_error == "ReleasedTooOften: released 11 times without an end"
    assert released.settled == Settled(token=MINE, verb=Verb.RELEASE)


def test_the_eleventh_release_can_kill() -> None:
    assert release(a_task(held(), releases=10, max_attempts=1)).state == Dead(at=NOON)


def test_an_expired_lease_is_a_failed_attempt() -> None:
    task = a_task(held(until=NOON))

    expired = expire(task)

    assert expired.state == Queued()
    assert expired.attempts == 1
    assert expired.run_after == NOON + 2.5 * SECOND
    assert expired.settled is None
    assert expired.errors[0] == AttemptError(
        attempt=1,
        worker_id=WORKER,
        at=NOON,
        type="LeaseExpired",
        message="worker worker-1 neither finished the task nor renewed its lease",
    )


def test_an_expired_last_lease_kills_the_task() -> None:
    assert expire(a_task(held(until=NOON), attempts=2)).state == Dead(at=NOON)


@pytest.mark.parametrize(
    "state", [held(until=NOON + MICROSECOND), Queued(), Succeeded(at=NOON), Dead(at=NOON)], ids=repr
)
def test_what_has_no_expired_lease_is_left_alone(state: State) -> None:
    task = a_task(state)

    assert expire(task) is task


def test_a_lease_that_never_arrived_counts_as_nothing() -> None:
    task = a_task(held(), attempts=1, releases=10)

    undone = lifecycle.undo_lease(task, token=MINE, now=NOON)

    assert undone == attrs.evolve(task, state=Queued(), version=42, updated_at=NOON)


@pytest.mark.parametrize("state", [held(OTHER), Queued(), Succeeded(at=NOON)], ids=repr)
def test_only_that_lease_is_undone(state: State) -> None:
    task = a_task(state)

    assert lifecycle.undo_lease(task, token=MINE, now=NOON) is task


CANCELLING: dict[str, Callable[[Task], Task]] = {
    "fail": fail,
    "fail for good": lambda task: fail(task, retry=False),
    "release": release,
    "undo": lambda task: lifecycle.undo_lease(task, token=MINE, now=NOON),
}


@pytest.mark.parametrize("end", CANCELLING.values(), ids=CANCELLING)
def test_a_task_called_off_is_cancelled_when_its_lease_ends(end: Callable[[Task], Task]) -> None:
    task = a_task(held(cancel_requested_at=NOON - SECOND), max_attempts=1)

    assert end(task).state == Cancelled(at=NOON)


def test_a_task_called_off_is_cancelled_when_its_lease_expires() -> None:
    cancelled = expire(a_task(held(until=NOON, cancel_requested_at=NOON - SECOND)))

    assert cancelled.state == Cancelled(at=NOON)
    assert cancelled.attempts == 1
    assert cancelled.last_error is not None


def test_a_queued_task_is_cancelled_at_once() -> None:
    task = a_task(Queued())

    cancelled = lifecycle.cancel(task, now=NOON)

    assert cancelled == attrs.evolve(task, state=Cancelled(at=NOON), version=42, updated_at=NOON)


def test_a_leased_task_is_called_off() -> None:
    task = a_task(held())

    called_off = lifecycle.cancel(task, now=NOON)

    assert called_off == attrs.evolve(
        task, state=held(cancel_requested_at=NOON), version=42, updated_at=NOON
    )


@pytest.mark.parametrize(
    "state", [held(cancel_requested_at=NOON - SECOND), Cancelled(at=NOON - SECOND)], ids=repr
)
def test_a_second_cancel_changes_nothing(state: State) -> None:
    task = a_task(state)

    assert lifecycle.cancel(task, now=NOON) is task


@pytest.mark.parametrize("state", [Succeeded(at=NOON), Failed(at=NOON), Dead(at=NOON)], ids=repr)
def test_a_task_that_has_ended_cannot_be_cancelled(state: State) -> None:
    with pytest.raises(TaskFinishedError):
        lifecycle.cancel(a_task(state), now=NOON)


@pytest.mark.parametrize("state", [Failed(at=NOON), Dead(at=NOON), Cancelled(at=NOON)], ids=repr)
def test_requeue_starts_a_new_cycle(state: State) -> None:
    task = a_task(state, attempts=3, releases=4, errors=(an_error(3),))

    requeued = lifecycle.requeue(task, now=NOON + SECOND)

    assert requeued == attrs.evolve(
        task,
        state=Queued(),
        attempts=0,
        releases=0,
        run_after=NOON + SECOND,
        version=42,
        updated_at=NOON + SECOND,
    )


@pytest.mark.parametrize("state", [Queued(), held(), Succeeded(at=NOON)], ids=repr)
def test_only_what_was_given_up_is_requeued(state: State) -> None:
    with pytest.raises(TaskNotDeadError):
        lifecycle.requeue(a_task(state), now=NOON)


@pytest.mark.parametrize(
    "state", [Succeeded(at=NOON), Failed(at=NOON), Dead(at=NOON), Cancelled(at=NOON)], ids=repr
)
def test_what_has_ended_may_be_deleted(state: State) -> None:
    lifecycle.require_finished(a_task(state))


@pytest.mark.parametrize("state", [Queued(), held()], ids=repr)
def test_what_has_not_ended_may_not_be_deleted(state: State) -> None:
    with pytest.raises(TaskNotFinishedError):
        lifecycle.require_finished(a_task(state))


LOST: list[tuple[State, Settled | None, LostReason]] = [
    (held(until=NOON), None, LostReason.LEASE_EXPIRED),
    (held(until=NOON - MICROSECOND), None, LostReason.LEASE_EXPIRED),
    (held(OTHER), None, LostReason.LEASE_SUPERSEDED),
    (held(OTHER, until=NOON), None, LostReason.LEASE_SUPERSEDED),
    (Queued(), None, LostReason.LEASE_EXPIRED),
    (Queued(), Settled(token=OTHER, verb=Verb.FAIL), LostReason.LEASE_EXPIRED),
    (Cancelled(at=NOON), None, LostReason.TASK_CANCELLED),
    (Succeeded(at=NOON), None, LostReason.TASK_FINISHED),
    (Failed(at=NOON), None, LostReason.TASK_FINISHED),
    (Dead(at=NOON), None, LostReason.TASK_FINISHED),
]


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
@pytest.mark.parametrize(("state", "settled", "reason"), LOST)
def test_a_worker_that_lost_its_lease_changes_nothing_and_is_told_why(
    end: Callable[[Task], Task], state: State, settled: Settled | None, reason: LostReason
) -> None:
    with pytest.raises(LeaseLostError) as lost:
        end(a_task(state, settled=settled))

    assert lost.value.reason is reason


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
def test_a_lease_lives_until_just_before_its_end(end: Callable[[Task], Task]) -> None:
    end(a_task(held(until=NOON + MICROSECOND)))


VERBS = {Verb.COMPLETE: complete, Verb.FAIL: fail, Verb.RELEASE: release}
GONE_ON: list[State] = [Queued(), held(OTHER)]
ENDED: list[State] = [
    Succeeded(at=NOON),
    Failed(at=NOON),
    Dead(at=NOON),
    Cancelled(at=NOON),
]


@pytest.mark.parametrize("state", GONE_ON + ENDED, ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_a_repeat_of_the_last_settle_has_no_effect(verb: Verb, state: State) -> None:
    task = a_task(state, settled=Settled(token=MINE, verb=verb))

    assert VERBS[verb](task) is task


@pytest.mark.parametrize("state", GONE_ON, ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_another_verb_after_a_settle_is_refused_as_superseded_when_the_task_goes_on(
    verb: Verb, state: State
) -> None:
    task = a_task(state, settled=Settled(token=MINE, verb=verb))

    for other in set(VERBS) - {verb}:
        with pytest.raises(LeaseLostError) as lost:
            VERBS[other](task)
        assert lost.value.reason is LostReason.LEASE_SUPERSEDED


@pytest.mark.parametrize("state", ENDED, ids=repr)
@pytest.mark.parametrize("verb", VERBS)
def test_another_verb_after_a_settle_is_refused_as_finished_when_the_task_has_ended(
    verb: Verb, state: State
) -> None:
    task = a_task(state, settled=Settled(token=MINE, verb=verb))

    for other in set(VERBS) - {verb}:
        with pytest.raises(LeaseLostError) as lost:
            VERBS[other](task)
        assert lost.value.reason is LostReason.TASK_FINISHED


def test_an_error_without_a_message_is_shown_by_its_type() -> None:
    assert str(attrs.evolve(an_error(1), message="")) == "E"


def test_a_task_without_errors_has_no_last_error() -> None:
    assert a_task(Queued()).last_error is None


def test_an_unreadable_row_says_so() -> None:
    error = unreadable_row(WORKER, now=NOON)

    assert (error.attempt, error.worker_id, error.at) == (1, WORKER, NOON)
    assert error.type == "UnreadableTask"
