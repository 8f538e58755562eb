"""Letting hypothesis look for a course of events after which something is not as it should be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import ClassVar, Final

import pytest
from hypothesis import settings as Settings  # noqa: N812  a class, whatever its spelling
from hypothesis.stateful import run_state_machine_as_test

from ...adapters.memory import MemoryStorage
from ...domain.ports import Storage
from ..conformance.fixtures import StorageFixtures
from .machine import CourseOfEvents
from .stage import Stage

BRIEF: Final = Settings(max_examples=20, stateful_step_count=40, deadline=None)
"""A few seconds on a storage that answers in a millisecond."""


async def play(storages: Mapping[str, Storage], *, settings: Settings = BRIEF) -> None:
    """
    Play courses of events on all `storages` at once, and compare them with the model.

    What they hold at the beginning is deleted. The shortest course that was found to go
    wrong is told as a failing test.
    """
    stage = Stage(storages, asyncio.get_running_loop())
    # hypothesis knows no event loop: it plays in a thread, and the storages stay on this loop.
    await asyncio.to_thread(_play, stage, settings)


def _play(stage: Stage, settings: Settings) -> None:
    class Courses(CourseOfEvents):
        def __init__(self) -> None:
            super().__init__(stage)

    run_state_machine_as_test(Courses, settings=settings)


class ModelConformance(StorageFixtures):
    """
    Inherit this beside the suites for a storage, and supply the same fixture.

    The storage is played beside one in memory, so that a failure tells whether the
    storage is wrong or the services are.
    """

    pytestmark = pytest.mark.asyncio

    settings: ClassVar[Settings] = BRIEF
    """How many courses of events to play, and how long they are."""

    async def test_no_course_of_events_leaves_the_model(self, storage: Storage) -> None:
        await play({"memory": MemoryStorage(), "storage": storage}, settings=self.settings)
