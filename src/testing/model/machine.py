"""Courses of events: any verb after any other, in either process, at any time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from typing import Final

import attrs
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ...domain.ids import QueueName, TaskId
from ...domain.requests import (
    HeartbeatRequest,
    LeaseRef,
    LeaseRequest,
    NewTask,
    PageRequest,
    Settlement,
    TaskFilter,
)
from ...domain.task import Status
from ...domain.views import Beat, Enqueued, LeasedTask, QueueView, TaskPage, TaskView
from ..builders import a_task_id
from . import asking
from .asking import Verb
from .comparing import check_key_taken, check_lease, check_queue, check_view, check_words
from .promises import Promises
from .reference import NOT_FOUND, Reference
from .stage import Stage, word

_NOBODYS: Final = a_task_id(0)
_ALL: Final = PageRequest(size=1000, with_payload=True)


class CourseOfEvents(RuleBasedStateMachine):
    """Does the same to each storage on the stage and to the reference, and compares."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage
        self._reference = Reference()
        self._promises = Promises()
        self._grants: list[LeaseRef] = []
        self._said: list[Settlement] = []
        self._gone: list[TaskId] = [_NOBODYS]
        stage.begin()

    def teardown(self) -> None:
        """Leave the stage."""
        self._stage.end()

    # --- producers

    @initialize(process=asking.processes, new=st.lists(asking.new_tasks, min_size=1, max_size=4))
    def begin(self, process: int, new: list[NewTask]) -> None:
        """Begin with a few tasks."""
        self.enqueue(process, new)

    @rule(process=asking.processes, new=st.lists(asking.new_tasks, min_size=1, max_size=3))
    def enqueue(self, process: int, new: list[NewTask]) -> None:
        """Enqueue tasks, some under keys that are taken."""
        answers = self._stage.ask(process, lambda there: there.queue.enqueue(new))

        assert isinstance(answers, list)
        for each, answer in zip(new, answers, strict=True):
            holder = self._reference.holder(each)
            if holder is None:
                assert isinstance(answer, Enqueued)
                assert answer.created
                assert answer.task.id not in self._reference.tasks
                self._reference.enqueue(each, answer.task, self._stage.now())
                assert answer.task == self._reference.tasks[answer.task.id].view
                self._promises.stored += 1
            else:
                check_key_taken(each, holder, answer)

    # --- workers

    @rule(process=asking.processes, request=asking.lease_requests)
    def lease(self, process: int, request: LeaseRequest) -> None:
        """Lease what is due."""
        self._lease(process, request)

    @rule(
        process=asking.processes,
        queue=asking.queues,
        end=asking.rounds,
        times=st.sampled_from([2, 10, 12]),
    )
    def go_round(
        self, process: int, queue: str, end: Callable[..., Settlement] | None, times: int
    ) -> None:
        """Lease one task and give it back, or take the lease back, again and again."""
        request = LeaseRequest(worker_id="worker-1", queues=(queue,))
        for _ in range(times):
            for leased in self._lease(process, request):
                if end is None:
                    self._undo(process, [leased.ref])
                else:
                    self._settle(process, [end(ref=leased.ref)])
                self.all_is_as_it_should_be()
                break
            else:
                return

    @rule(
        process=asking.processes,
        words=st.lists(st.tuples(asking.picks, asking.endings), min_size=1, max_size=3),
    )
    def settle(self, process: int, words: list[tuple[int, Callable[..., Settlement]]]) -> None:
        """End attempts, some of them ended already."""
        refs = self._refs(process, [pick for pick, _ in words])
        ends = [end for _, end in words]
        self._settle(process, [end(ref=ref) for end, ref in zip(ends, refs, strict=False)])

    @precondition(lambda self: self._said)
    @rule(process=asking.processes, back=st.integers(1, 3))
    def settle_as_before(self, process: int, back: int) -> None:
        """Say again what was said lately, as a worker does that got no answer."""
        self._settle(process, self._said[-back:])

    @rule(
        process=asking.processes,
        picks=st.lists(asking.picks, min_size=1, max_size=3),
        duration=asking.durations,
    )
    def heartbeat(self, process: int, picks: list[int], duration: timedelta) -> None:
        """Renew leases, some of them over."""
        refs = tuple(self._refs(process, picks))
        request = HeartbeatRequest(worker_id="worker-1", leases=refs, lease_duration=duration)
        answers = self._stage.ask(process, lambda there: there.queue.heartbeat(request))

        now = self._stage.now()
        check_words(answers, [self._reference.heartbeat(ref, duration, now) for ref in refs])
        assert isinstance(answers, list)
        for ref, answer in zip(refs, answers, strict=True):
            if isinstance(answer, Beat):
                task = self._reference.tasks[TaskId(ref.task_id)]
                assert now + answer.lease_duration == task.view.lease_expires_at
                assert answer.cancel_requested == task.cancel_asked

    @rule(process=asking.processes, picks=st.lists(asking.picks, min_size=1, max_size=2))
    def undo(self, process: int, picks: list[int]) -> None:
        """Take leases back that did not reach their workers."""
        self._undo(process, self._refs(process, picks))

    # --- operators

    @rule(process=asking.processes, picks=st.lists(asking.picks, min_size=1, max_size=3))
    def cancel(self, process: int, picks: list[int]) -> None:
        """Call tasks off, more often than not leased ones."""
        refs = self._refs(process, picks)
        self._change(process, "cancel", [TaskId(ref.task_id) for ref in refs])

    @rule(
        process=asking.processes,
        verb=asking.verbs,
        picks=st.lists(asking.picks, min_size=1, max_size=3, unique=True),
    )
    def operate(self, process: int, verb: Verb, picks: list[int]) -> None:
        """Cancel, requeue or delete tasks, and look at one of them."""
        ids = list(dict.fromkeys(self._task_id(pick, asking.FITTING[verb]) for pick in picks))
        self._change(process, verb, ids)
        seen = self._stage.ask(1 - process, lambda there: there.queue.get(ids[0]))

        known = self._reference.tasks.get(ids[0])
        if known is None:
            assert word(seen) in NOT_FOUND
        else:
            assert isinstance(seen, TaskView)
            check_view(known, seen)

    @rule(
        process=asking.processes,
        queue=asking.queues,
        paused=st.sampled_from([False, False, True]),
    )
    def pause_or_resume(self, process: int, queue: str, *, paused: bool) -> None:
        """Stop leasing from a queue, or go on."""
        if paused:
            answer = self._stage.ask(process, lambda there: there.admin.pause_queue(queue))
        else:
            answer = self._stage.ask(process, lambda there: there.admin.resume_queue(queue))

        assert answer is None
        self._reference.paused.discard(queue)
        self._reference.paused |= {queue} if paused else set()

    # --- maintenance and time

    @rule(process=asking.processes)
    def reap_and_prune(self, process: int) -> None:
        """End leases whose time is over, and delete what ended long ago."""
        now, before = self._stage.now(), set(self._reference.tasks)
        reaped = self._stage.ask(process, lambda there: there.maintenance.reap())
        pruned = self._stage.ask(process, lambda there: there.maintenance.prune())

        self._promises.reaped = True
        assert reaped == self._reference.reap(now)
        assert pruned == self._reference.prune(now)
        self._note_removed(before)

    @rule(span=asking.spans)
    def let_time_pass(self, span: timedelta) -> None:
        """Let some time pass."""
        self._stage.pass_by(span)

    @precondition(lambda self: self._reference.moments(self._stage.now()))
    @rule(pick=st.integers(0, 3), edge=asking.edges)
    def reach_a_moment(self, pick: int, edge: timedelta) -> None:
        """Let time pass until something begins or ends, to the microsecond."""
        now = self._stage.now()
        moments = self._reference.moments(now)
        span = moments[pick % len(moments)] + edge - now
        self._stage.pass_by(max(span, timedelta(0)))

    # --- what is checked after each

    @invariant()
    def all_is_as_it_should_be(self) -> None:
        """Compare everything that operators see, in both processes."""
        now = self._stage.now()
        page = self._stage.ask(0, lambda there: there.admin.list_tasks(TaskFilter(), _ALL))
        assert isinstance(page, TaskPage)
        assert page.next_cursor == ""
        assert [task.id for task in page.tasks] == sorted(self._reference.tasks, reverse=True)
        for task in page.tasks:
            check_view(self._reference.tasks[task.id], task)
        self._promises.look(page.tasks, now)
        shown = self._stage.ask(1, lambda there: there.admin.list_queues())
        assert isinstance(shown, list)
        self._check_queues(shown)

    def _check_queues(self, shown: Sequence[QueueView]) -> None:
        views = {queue.name: queue for queue in shown}
        for name in map(QueueName, asking.QUEUES):
            tasks = [t.view for t in self._reference.tasks.values() if t.view.queue == name]
            unheard_of = QueueView(name=name, paused=False, depths={}, oldest_due=None)
            queue = views.pop(name, unheard_of)
            assert queue.paused == (name in self._reference.paused)
            check_queue(queue, tasks, self._stage.now())
        assert views == {}

    # --- the parts of rules

    def _lease(self, process: int, request: LeaseRequest) -> list[LeasedTask]:
        answer = self._stage.ask(process, lambda there: there.queue.lease(request))

        now = self._stage.now()
        assert isinstance(answer, list)
        assert [leased.task.id for leased in answer] in self._reference.choices(request, now)
        for leased in answer:
            self._reference.lease(leased, request, now)
            check_lease(self._reference.tasks[leased.task.id], leased, now)
            self._promises.leased(leased, now)
            self._grants.append(leased.ref)
        return answer

    def _settle(self, process: int, settlements: list[Settlement]) -> None:
        answers = self._stage.ask(process, lambda there: there.queue.settle(settlements))

        now = self._stage.now()
        check_words(answers, [self._reference.settle(each, now) for each in settlements])
        self._said += settlements

    def _change(self, process: int, verb: Verb, ids: list[TaskId]) -> None:
        answers = self._stage.ask(process, lambda there: getattr(there.admin, verb)(ids))

        now, before = self._stage.now(), set(self._reference.tasks)
        change = getattr(self._reference, verb)
        check_words(answers, [change(task_id, now) for task_id in ids])
        self._promises.requeued = verb == "requeue"
        self._note_removed(before)

    def _undo(self, process: int, refs: Sequence[LeaseRef]) -> None:
        answer = self._stage.ask(process, lambda there: there.queue.undo_leases(refs))

        assert answer is None
        for ref in refs:
            self._reference.undo(ref, self._stage.now())

    def _note_removed(self, before: set[TaskId]) -> None:
        removed = before - self._reference.tasks.keys()
        self._promises.removed += len(removed)
        self._gone += sorted(removed)

    def _refs(self, process: int, picks: Sequence[int]) -> list[LeaseRef]:
        """Return leases, more often than not current ones: some are made, if there are none."""
        if not self._reference.current():
            self._lease(process, asking.ANYTHING)
        current = self._reference.current()
        over = [ref for ref in reversed(self._grants) if ref not in current]
        wrong = [attrs.evolve(ref, lease_token="nobody's") for ref in self._grants[-1:]]
        others = [*over[:6], *wrong]
        pools = [current if pick <= asking.MOSTLY and current else others for pick in picks]
        return [pool[pick % len(pool)] for pick, pool in zip(picks, pools, strict=True) if pool]

    def _task_id(self, pick: int, fitting: Collection[Status]) -> TaskId:
        """Return a task, more often than not one of a status that fits, if there is any."""
        newest = sorted(self._reference.tasks, reverse=True)
        fit = [task for task in newest if self._reference.tasks[task].view.status in fitting]
        known = fit if pick <= asking.MOSTLY and fit else [*newest[:8], self._gone[-1]]
        return known[pick % len(known)]
