"""
Forks of a process that uses leaseq, as prefork servers and `multiprocessing` make them.

Threads, connections and locks that others held do not survive a fork. What has any forgets
them in the child, and makes them anew when it is next used there; the parent goes on. What
was inherited is kept for ever: to close it in the child could end what the parent uses. What
no child may inherit at all is laid down before, and taken up anew by both.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol
from weakref import WeakSet

_CALLS_END_WITHIN: Final = 1.0
"""Seconds for which a fork waits for calls that are under way."""


class Forgetful(Protocol):
    """What is of no use in a child as it was in the parent."""

    def forget(self) -> None:
        """Be as new. Called in the child, which has one thread then."""
        ...


class Portable(Protocol):
    """What no child may inherit."""

    def lay_down(self) -> None:
        """Give it up until the next call. Called in any thread, with no call under way."""
        ...


class _Forks:
    """Who has to forget what in a child, and the calls that no fork may cut in two."""

    def __init__(self) -> None:
        self._forgetful: WeakSet[Forgetful] = WeakSet()
        self._portable: WeakSet[Portable] = WeakSet()
        self._changed = threading.Condition()
        self._calls = 0
        self._forks = 0
        self._cut_in_two = False

    @property
    def cut_in_two(self) -> bool:
        """Whether this process was forked in the middle of its parent's calls."""
        return self._cut_in_two

    def cut(self) -> None:
        """Take it that this process was forked in the middle of calls."""
        self._cut_in_two = True

    def remember(self, thing: Forgetful) -> None:
        """Let `thing` forget in children, as long as it lives."""
        self._forgetful.add(thing)

    def lay_down_before(self, thing: Portable) -> None:
        """Let `thing` be laid down before each fork, as long as it lives."""
        self._portable.add(thing)

    def keep(self, inherited: object) -> None:
        """Let nothing ever close `inherited`, not even the interpreter as it ends."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))

    @contextmanager
    def call(self) -> Iterator[None]:
        """Carry out something that ends soon, and that no fork may cut in two."""
        with self._changed:
            self._changed.wait_for(lambda: not self._forks)
            self._calls += 1
        try:
            yield
        finally:
            with self._changed:
                self._calls -= 1
                if not self._calls:
                    self._changed.notify_all()

    def before(self) -> None:
        with self._changed:
            self._forks += 1
            if self._changed.wait_for(lambda: not self._calls, timeout=_CALLS_END_WITHIN):
                for thing in list(self._portable):
                    thing.lay_down()

    def after_in_parent(self) -> None:
        with self._changed:
            self._forks -= 1
            self._changed.notify_all()

    def after_in_child(self) -> None:
        if self._calls:
            self.cut()
        self._changed = threading.Condition()
        self._calls = self._forks = 0
        for thing in list(self._forgetful):
            thing.forget()


FORKS: Final = _Forks()

os.register_at_fork(
    before=FORKS.before,
    after_in_parent=FORKS.after_in_parent,
    after_in_child=FORKS.after_in_child,
)
