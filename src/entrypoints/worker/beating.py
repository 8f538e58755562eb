"""
What a heart's own process does: beats for the worker that started it, and for no other.

- It ends as soon as the worker's process has ended, so a worker that was killed loses its
  leases as if nobody had helped it.
- It renews nothing for a worker that was stopped (SIGSTOP, Ctrl-Z, a debugger).
- A worker that runs but says nothing keeps its leases: each until its handler's timeout
  is over, and all of them for fifteen minutes.

SIGINT and SIGTERM are blocked in it from its start: who stops a worker stops its heart last.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from datetime import timedelta
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, NoReturn

import attrs

from ...adapters.ids import RandomJitter
from ...domain.requests import LeaseRef
from ..connection import open_blocking
from .heart import Heart
from .ledger import BeatPlan, Hold, Sign, Verdict
from .moment import Moment, read_moment

_logger = logging.getLogger(__name__)

MUTE_AFTER: Final = 5.0
"""Seconds without a word of the worker after which the timeouts of its handlers bound leases."""

AWAY_AFTER: Final = 15 * 60.0
"""Seconds without a word after which nobody will believe that it still works."""

_STOPPED: Final = frozenset("TtZX")
"""Of `proc_pid_stat(5)`: stopped by a signal or a debugger, and dead."""

_LOOK_FOR_PARENT_EVERY: Final = 0.25


@attrs.frozen(kw_only=True)
class Begin:
    """The first word of a worker: for whom to beat, and how."""

    url: str = attrs.field(repr=False)
    worker_id: str
    worker_pid: int
    plan: BeatPlan
    log_level: int


@attrs.frozen(kw_only=True)
class Word:
    """What a worker says now and then; an empty one is a sign of life."""

    holds: tuple[Hold, ...] = ()
    reporting: tuple[tuple[LeaseRef, Moment], ...] = ()
    dropped: tuple[LeaseRef, ...] = ()


@attrs.frozen(kw_only=True)
class End:
    """The last word of a worker."""


@attrs.frozen(kw_only=True)
class Hearing:
    """What a heart says when it has opened the queue, and when this changes."""

    silent: bool
    """See `Heart.silent`."""


def writable(pipe: Connection) -> bool:
    """Whether a short message can be sent at once."""
    poll = select.poll()
    poll.register(pipe.fileno(), select.POLLOUT)
    return bool(poll.poll(0))


def sign_of(state: str, mute: float) -> Sign:
    """
    Return what to make of a worker.

    Args:
        state: of its process, as the system calls it; empty where it does not say.
        mute: seconds since its last word.
    """
    if state in _STOPPED or mute >= AWAY_AFTER:
        return Sign.AWAY
    return Sign.MUTE if mute >= MUTE_AFTER else Sign.ALIVE


def main(descriptor: int) -> NoReturn:
    """Beat until the worker has no more to say."""
    voice = _Voice(Connection(descriptor))
    begin: Begin = voice.hear()
    threading.Thread(target=_watch_parent, args=(begin.worker_pid,), daemon=True).start()
    logging.root.addHandler(_Forwarding(voice))
    logging.root.setLevel(begin.log_level)
    try:
        with open_blocking(begin.url, deadline=timedelta(seconds=begin.plan.deadline)) as opened:
            heart = Heart(
                opened.queue,
                worker_id=begin.worker_id,
                plan=begin.plan,
                tell=lambda verdict: _tell(verdict, heart, voice),
                watch=lambda _: None,
                stopwatch=read_moment,
                jitter=RandomJitter(),
            )
            _beat(heart, voice, begin)
    except Exception:
        _logger.exception("heartbeats impossible", extra={"worker_id": begin.worker_id})
        os._exit(1)
    # A beat that is under way keeps nobody waiting.
    os._exit(0)


def _tell(verdict: Verdict, heart: Heart, voice: _Voice) -> None:
    # First that nobody hears: the slot that a lost task frees is then not filled again.
    if heart.silent:
        voice.say(Hearing(silent=True))
    voice.say(verdict)


def _beat(heart: Heart, voice: _Voice, begin: Begin) -> None:
    told = Hearing(silent=False)
    voice.say(told)
    heard = read_moment()
    turned = time.monotonic() - begin.plan.tick
    while True:
        left = turned + begin.plan.tick - time.monotonic()
        if left > 0 and voice.waits(left):
            word = voice.hear()
            if isinstance(word, End):
                return
            _take(word, heart)
            heard = read_moment()
            continue
        turned = time.monotonic()
        heart.turn(sign_of(_state(begin.worker_pid), read_moment().since(heard)))
        if heart.silent is not told.silent:
            told = Hearing(silent=heart.silent)
            voice.say(told)


def _take(word: Word, heart: Heart) -> None:
    heart.hold(word.holds)
    for ref, since in word.reporting:
        heart.reporting(ref, since)
    for ref in word.dropped:
        heart.drop(ref)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _watch_parent(pid: int) -> None:
    # The pipe tells at once, unless some other child of the worker has inherited an end of it.
    while os.getppid() == pid:
        time.sleep(_LOOK_FOR_PARENT_EVERY)
    os._exit(0)


class _Voice:
    """Speaks with the worker, from any thread; ends the process when it is gone."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._speaking = threading.Lock()

    def waits(self, seconds: float) -> bool:
        return self._pipe.poll(seconds)

    def hear(self) -> Any:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            os._exit(0)

    def say(self, message: object) -> None:
        try:
            with self._speaking:
                self._pipe.send(message)
        except OSError:
            os._exit(0)

    def say_if_heard(self, message: object) -> None:
        with self._speaking:
            if not writable(self._pipe):
                return
        self.say(message)


class _Forwarding(QueueHandler):
    """Lets the worker log; what it is too busy to hear is not worth a beat that waits."""

    def __init__(self, voice: _Voice) -> None:
        # The queue would only be used by the `enqueue` that is replaced.
        super().__init__(SimpleQueue())
        self._voice = voice

    def enqueue(self, record: logging.LogRecord) -> None:
        self._voice.say_if_heard(record)
