import asyncio
import threading
import time
from typing import Any

import pytest

from leaseq.domain.task import Status
from leaseq.entrypoints.worker.pulse import Pulse
from worker_rig import SOON, ManualStopwatch, Rig, running


@pytest.fixture
def stopwatch() -> ManualStopwatch:
    return ManualStopwatch()


def a_pulse(stopwatch: ManualStopwatch, names: dict[str, object] | None = None) -> Pulse:
    return Pulse(
        worker_id="worker-1",
        interval=0.0,
        stopwatch=stopwatch,
        name_handler=lambda _: names or {},
    )


class Blocked:
    """A pulse whose loop hangs in a handler, for as long as the block lasts."""

    def __init__(self, pulse: Pulse) -> None:
        self._pulse = pulse
        self._blocked = threading.Event()
        self._go_on = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._live()))

    async def _live(self) -> None:
        beat = asyncio.create_task(self._pulse.beat())
        await asyncio.sleep(0)
        self._blocked.set()
        self._go_on.wait(SOON)
        beat.cancel()

    def __enter__(self) -> None:
        self._thread.start()
        assert self._blocked.wait(SOON)

    def __exit__(self, *_: object) -> None:
        self._go_on.set()
        self._thread.join(SOON)


def look(pulse: Pulse, stopwatch: ManualStopwatch, *, seconds: float) -> None:
    stopwatch.advance(seconds)
    pulse.look(stopwatch())


def test_a_blocked_loop_is_warned_of_once_with_the_handler_and_the_place(
    stopwatch: ManualStopwatch, caplog: pytest.LogCaptureFixture
) -> None:
    pulse = a_pulse(stopwatch, {"task_type": "send_email"})

    with Blocked(pulse):
        for _ in range(10):
            look(pulse, stopwatch, seconds=0.5)

    [record] = caplog.records
    assert record.getMessage() == "event loop blocked"
    assert record.__dict__["task_type"] == "send_email"
    assert record.__dict__["seconds"] == 1.0
    assert ".py:" in record.__dict__["where"]


def test_a_process_that_stood_still_is_not_called_blocked(
    stopwatch: ManualStopwatch, caplog: pytest.LogCaptureFixture
) -> None:
    pulse = a_pulse(stopwatch)

    with Blocked(pulse):
        look(pulse, stopwatch, seconds=60)

    assert caplog.records == []


def test_a_loop_that_turns_is_not_blocked(
    stopwatch: ManualStopwatch, caplog: pytest.LogCaptureFixture
) -> None:
    pulse = a_pulse(stopwatch)

    async def live() -> None:
        beat = asyncio.create_task(pulse.beat())
        for _ in range(10):
            stopwatch.advance(0.5)
            await asyncio.sleep(0)
            pulse.look(stopwatch())
        beat.cancel()

    asyncio.run(live())

    assert caplog.records == []


async def test_nothing_that_arrived_is_older_than_the_floor(stopwatch: ManualStopwatch) -> None:
    pulse = a_pulse(stopwatch)
    first = stopwatch()
    beat = asyncio.create_task(pulse.beat())
    await asyncio.sleep(0)
    assert pulse.floor == first

    for _ in range(5):
        stopwatch.advance(1)
        await asyncio.sleep(0)

    assert 0 < stopwatch().since(pulse.floor) <= 3
    beat.cancel()


async def test_the_handler_that_blocks_the_loop_is_named(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig()
    worker = rig.worker()

    @worker.task("block")
    async def block(_: dict[str, Any]) -> None:
        ends_at = time.monotonic() + SOON
        while "event loop blocked" not in caplog.messages and time.monotonic() < ends_at:
            rig.stopwatch.advance(0.05)
            threading.Event().wait(0.05)

    task_id = await rig.enqueue("block")

    async with running(worker):
        await rig.until(task_id, Status.SUCCEEDED)

    record = next(r for r in caplog.records if r.getMessage() == "event loop blocked")
    assert record.__dict__["task_type"] == "block"
    assert record.__dict__["task_id"] == task_id
    assert "test_pulse.py" in record.__dict__["where"] or "threading.py" in record.__dict__["where"]
