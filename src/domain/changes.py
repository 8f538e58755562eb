"""Load, decide, store: how every change of stored tasks is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import attrs

from .errors import (
    ContendedError,
    InvalidArgumentError,
    TaskNotFoundError,
    TaskQueueError,
    UnreadableTaskError,
)
from .ids import TaskId
from .ports import Clock, TaskRepository
from .snapshots import Snapshots
from .storing import Change, Replaced
from .task import Leased, Task

_TRIES: Final = 3

Decision = Callable[[Task, datetime], Task]
"""
From a task and the time to the task as it shall be; the same object for no change.
Refuses by raising a TaskQueueError.
"""


@attrs.frozen(kw_only=True)
class Wish:
    """One change that a caller asks for."""

    task_id: TaskId
    decide: Decision


def sound_wish(make: Callable[[], Wish]) -> Wish | InvalidArgumentError:
    """Return what `make` makes, or its refusal as a value."""
    try:
        return make()
    except InvalidArgumentError as refusal:
        return refusal


@attrs.frozen
class TaskChanger:
    """
    Makes changes by compare-and-swap, deciding again where somebody was faster.

    A first try may decide by a snapshot of the task instead of loading it. It may only
    accept: what a snapshot refuses is decided on what is stored.
    """

    _tasks: TaskRepository
    _clock: Clock
    _snapshots: Snapshots

    async def make(
        self, wishes: Sequence[Wish | InvalidArgumentError]
    ) -> list[Task | TaskQueueError]:
        """
        Make the changes and answer each with the task as it is now, or with its refusal.

        Wishes for one task are met one after the other, in their order; an item that
        was refused at the door is answered with that refusal.
        """
        answers: dict[int, Task | TaskQueueError] = {
            index: wish for index, wish in enumerate(wishes) if not isinstance(wish, Wish)
        }
        waiting = {index: wish for index, wish in enumerate(wishes) if isinstance(wish, Wish)}
        tries = dict.fromkeys(waiting, 0)
        while waiting:
            turn = _first_of_each_task(waiting)
            for index in turn:
                tries[index] += 1
            answers |= await self._try(turn)
            for index, wish in turn.items():
                if index not in answers and tries[index] >= _TRIES:
                    answers[index] = ContendedError(f"task {wish.task_id}")
            waiting = {index: wish for index, wish in waiting.items() if index not in answers}
        return [answers[index] for index in range(len(wishes))]

    async def _try(self, turn: Mapping[int, Wish]) -> dict[int, Task | TaskQueueError]:
        changes = self._accepted_by_snapshot(turn)
        unseen = {index: wish for index, wish in turn.items() if index not in changes}
        answers, decided = await self._decide_on_stored(unseen)
        return answers | await self._store(changes | decided)

    def _accepted_by_snapshot(self, turn: Mapping[int, Wish]) -> dict[int, Change]:
        changes: dict[int, Change] = {}
        now = self._clock.now()
        for index, wish in turn.items():
            seen = self._snapshots.recall(wish.task_id)
            if seen is None:
                continue
            with suppress(TaskQueueError):
                new = wish.decide(seen, now)
                if new is not seen:
                    changes[index] = Change(old=seen, new=new)
        return changes

    async def _decide_on_stored(
        self, turn: Mapping[int, Wish]
    ) -> tuple[dict[int, Task | TaskQueueError], dict[int, Change]]:
        answers: dict[int, Task | TaskQueueError] = {}
        changes: dict[int, Change] = {}
        if not turn:
            return answers, changes
        asked_at = self._clock.now()
        found = await self._tasks.load([wish.task_id for wish in turn.values()], with_payload=False)
        stored = {task.id: task for task in found.tasks}
        now = self._clock.now()
        for index, wish in turn.items():
            old = stored.get(wish.task_id)
            if old is None:
                unreadable = wish.task_id in found.unreadable
                missing = UnreadableTaskError if unreadable else TaskNotFoundError
                answers[index] = missing(wish.task_id)
                continue
            try:
                new = wish.decide(old, now)
            except TaskQueueError as refusal:
                if _refuses(wish, old, asked_at):
                    answers[index] = refusal
                continue
            if new is old:
                answers[index] = old
            else:
                changes[index] = Change(old=old, new=new)
        return answers, changes

    async def _store(self, changes: Mapping[int, Change]) -> dict[int, Task | TaskQueueError]:
        if not changes:
            return {}
        for change in changes.values():
            self._snapshots.forget(change.old.id)
        outcomes = await self._tasks.replace(list(changes.values()))
        answers: dict[int, Task | TaskQueueError] = {}
        for (index, change), outcome in zip(changes.items(), outcomes, strict=True):
            if isinstance(outcome, TaskQueueError):
                answers[index] = outcome
            elif outcome is Replaced.DONE:
                answers[index] = change.new
                if isinstance(change.new.state, Leased):
                    self._snapshots.keep(change.new)
        return answers


def _refuses(wish: Wish, task: Task, now: datetime) -> bool:
    """
    Return whether the wish was refused already when the task was asked for.

    A lease that ended since may have been renewed since as well, behind what was loaded.
    """
    try:
        wish.decide(task, now)
    except TaskQueueError:
        return True
    return False


def _first_of_each_task(waiting: Mapping[int, Wish]) -> dict[int, Wish]:
    turn: dict[TaskId, tuple[int, Wish]] = {}
    for index, wish in waiting.items():
        turn.setdefault(wish.task_id, (index, wish))
    return dict(turn.values())
