"""What a run is made of, and who knows whom."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from ...domain.ports import TaskQueue
from .carrying import Carrier
from .handlers import Handler
from .heart import Heart
from .held import HeldTasks
from .leasing import Leasing
from .outside import Outside
from .plan import Plan
from .pulse import Pulse
from .settling import Settler
from .slots import Slots
from .stopping import StopSwitch
from .threads import HandlerThreads


@attrs.frozen(kw_only=True, eq=False)
class Parts:
    """The parts of one run, made on the event loop on which it runs."""

    plan: Plan
    worker_id: str
    handlers: Mapping[str, Handler]
    outside: Outside
    queue: TaskQueue
    blocking: TaskQueue
    switch: StopSwitch
    slots: Slots = attrs.field(init=False)
    threads: HandlerThreads = attrs.field(init=False)
    settler: Settler = attrs.field(init=False)
    held: HeldTasks = attrs.field(init=False)
    pulse: Pulse = attrs.field(init=False)
    heart: Heart = attrs.field(init=False)
    carrier: Carrier = attrs.field(init=False)
    leasing: Leasing = attrs.field(init=False)

    @slots.default
    def _slots(self) -> Slots:
        return Slots(self.plan.concurrency)

    @threads.default
    def _threads(self) -> HandlerThreads:
        return HandlerThreads(self.plan.concurrency)

    @settler.default
    def _settler(self) -> Settler:
        return Settler(
            self.queue,
            worker_id=self.worker_id,
            deadline=self.plan.settle_within,
            jitter=self.outside.jitter,
            pause=self.outside.pause,
        )

    @held.default
    def _held(self) -> HeldTasks:
        return HeldTasks(on_lost=self.settler.give_up)

    @pulse.default
    def _pulse(self) -> Pulse:
        return Pulse(
            worker_id=self.worker_id,
            interval=self.plan.beats.tick,
            stopwatch=self.outside.stopwatch,
            name_handler=self.held.name_handler,
        )

    @heart.default
    def _heart(self) -> Heart:
        return Heart(
            self.blocking,
            worker_id=self.worker_id,
            plan=self.plan.beats,
            tell=self.held.tell,
            watch=self.pulse.look,
            stopwatch=self.outside.stopwatch,
            jitter=self.outside.jitter,
        )

    @carrier.default
    def _carrier(self) -> Carrier:
        return Carrier(
            worker_id=self.worker_id,
            handlers=self.handlers,
            held=self.held,
            heart=self.heart,
            settler=self.settler,
            slots=self.slots,
            threads=self.threads,
            floor=lambda: self.pulse.floor,
            stopwatch=self.outside.stopwatch,
        )

    @leasing.default
    def _leasing(self) -> Leasing:
        return Leasing(
            queue=self.queue,
            wanted=self.plan.lease_request(worker_id=self.worker_id, types=tuple(self.handlers)),
            slots=self.slots,
            silent=lambda: self.heart.silent,
            receive=self.carrier.receive,
            stopwatch=self.outside.stopwatch,
            jitter=self.outside.jitter,
            pause=self.outside.pause,
        )
