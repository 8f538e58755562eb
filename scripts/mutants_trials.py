"""
Many runs of the same tests, each with another mutant, for the price of one start of pytest.

The tests are collected once. Each mutant has a fork of this process: there its functions and
constants take the place of the sound ones, and the tests run that come by what was mutated,
until one fails. Those that killed earlier mutants of the file come first, then the fastest.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import Any

import pytest

_PLAIN = (str, bytes, int, float, datetime, timedelta, type(None))
_STUCK_SECONDS = 100
_MOST_MEMORY = 6 << 30


@dataclass(frozen=True)
class Mutant:
    """One change of one file, given as the text of the whole file."""

    path: Path
    name: str
    """How reports and explanations call it."""

    text: str
    lines: frozenset[int] | None = None
    """Those of the file where it shows, if it shows nowhere else."""

    at_import: bool = False
    """Whether something may have been made of it when its module was imported."""


@dataclass(frozen=True)
class Outcome:
    """What became of a mutant: the test that failed, or was stuck, or None."""

    mutant: Mutant
    killer: str | None
    relevant: list[str]
    """The tests that could have killed it."""


@dataclass(frozen=True)
class _Known:
    """What a test does when nothing is mutated."""

    seconds: float
    lines: Mapping[str, set[int]]
    """Those of the mutated files that it comes by, by file."""


class Trials:
    """A plugin of pytest, in whose place of a run there is one for each mutant."""

    def __init__(self, mutants: list[Mutant], told: Callable[[Outcome], None]) -> None:
        self._mutants = mutants
        self._told = told
        self._known: dict[str, _Known] = {}
        self._killers: defaultdict[Path, dict[str, None]] = defaultdict(dict)
        self.unsound: list[str] = []
        """Tests that fail without any mutant: they are not asked."""
        self.code: int = pytest.ExitCode.INTERNAL_ERROR

    def pytest_configure(self) -> None:
        """Have hypothesis look for an example, and not for the shortest."""
        import hypothesis  # noqa: PLC0415  before pytest is, it cannot be one of its plugins

        hypothesis.settings.register_profile(
            "mutants",
            phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
            database=None,
            derandomize=True,
        )
        hypothesis.settings.load_profile("mutants")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Run the tests once as they are, then once for each mutant."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        sound = {mutant.path for mutant in self._mutants}
        imported = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
        if missing := [p for p in sound if p.suffix == ".py" and str(p) not in imported]:
            raise pytest.UsageError(f"the tests do not import {missing}")
        told = _forked(lambda tell: _sound_run(session, sound, tell))
        for nodeid, seconds, passed, lines in map(json.loads, told):
            if passed:
                self._known[nodeid] = _Known(seconds, {file: set(ns) for file, ns in lines.items()})
            else:
                self.unsound.append(nodeid)
        for mutant in self._mutants:
            self._told(self._try(session, mutant))
        return True

    def _try(self, session: pytest.Session, mutant: Mutant) -> Outcome:
        killers = self._killers[mutant.path]
        items = [item for item in session.items if self._is_relevant(item.nodeid, mutant)]
        order = {nodeid: -place for place, nodeid in enumerate(killers, 1)}
        items.sort(key=lambda i: (order.get(i.nodeid, 1), self._known[i.nodeid].seconds))
        lines = _forked(lambda tell: _mutated_run(session, items, mutant, tell))
        last: str = json.loads(lines[-1])
        killer = None if last == "survived" else last
        if killer is not None:
            killers.pop(killer, None)
            killers[killer] = None
        return Outcome(mutant, killer, [item.nodeid for item in items])

    def _is_relevant(self, nodeid: str, mutant: Mutant) -> bool:
        if nodeid not in self._known:
            return False
        came_by = self._known[nodeid].lines.get(str(mutant.path), set())
        return mutant.lines is None or not mutant.lines.isdisjoint(came_by)


_Tell = Callable[[Any], None]


def _forked(run: Callable[[_Tell], None]) -> list[str]:
    """Return the lines that `run` tells in a fork; it is ended when it tells nothing for long."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(reading)
        resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY, _MOST_MEMORY))
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        try:
            run(lambda value: (os.write(writing, json.dumps(value).encode() + b"\n"), None)[1])
        finally:
            os._exit(0)
    os.close(writing)
    told = b""
    while select.select([reading], [], [], _STUCK_SECONDS)[0]:
        chunk = os.read(reading, 65536)
        if not chunk:
            break
        told += chunk
    os.close(reading)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return told.decode().splitlines()


def _sound_run(session: pytest.Session, paths: set[Path], tell: _Tell) -> None:
    files = {str(path) for path in paths}
    came_by: defaultdict[str, set[int]] = defaultdict(set)

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., Any] | None:
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            came_by[frame.f_code.co_filename].add(frame.f_lineno)
        return trace

    threading.settrace(trace)
    for index, item in enumerate(session.items):
        came_by.clear()
        begin = time.monotonic()
        sys.settrace(trace)
        passed = _passes(item, session.items[index + 1 : index + 2])
        sys.settrace(None)
        seconds = time.monotonic() - begin
        tell((item.nodeid, seconds, passed, {file: list(ns) for file, ns in came_by.items()}))


def _mutated_run(
    session: pytest.Session, items: list[pytest.Item], mutant: Mutant, tell: _Tell
) -> None:
    tell("its import")
    graft(mutant)
    for index, item in enumerate(items):
        # Told before: if it never ends, it is the last that was told.
        tell(item.nodeid)
        if not _passes(item, items[index + 1 : index + 2]):
            session._setupstate.teardown_exact(None)  # noqa: SLF001  as pytest does after `-x`
            return
    tell("survived")


def _passes(item: pytest.Item, following: list[pytest.Item]) -> bool:
    reports = _Reports()
    item.config.pluginmanager.register(reports)
    try:
        nextitem = following[0] if following else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=nextitem)
    finally:
        item.config.pluginmanager.unregister(reports)
    return not reports.failed


class _Reports:
    def __init__(self) -> None:
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed |= report.failed


def graft(mutant: Mutant) -> None:
    """Put the functions and constants of a mutant in the place of those of its module."""
    if mutant.path.suffix == ".sql":
        _graft_migration(mutant)
        return
    [module] = [m for m in sys.modules.values() if getattr(m, "__file__", "") == str(mutant.path)]
    scratch = {"__name__": module.__name__, "__package__": module.__package__}
    exec(compile(mutant.text, str(mutant.path), "exec"), scratch)  # noqa: S102  our own text
    for name, new in scratch.items():
        old = vars(module).get(name)
        if isinstance(old, type) and old.__module__ == module.__name__:
            for attribute, value in vars(new).items():
                _transplant(vars(old).get(attribute), value)
        elif _is_plain(old) and old != new:
            _replace_constant(name, old, new)
        else:
            _transplant(old, new)


def _transplant(old: object, new: object) -> None:
    for way in ("__func__", "fget", "__wrapped__"):
        if hasattr(old, way) and hasattr(new, way):
            _transplant(getattr(old, way), getattr(new, way))
    if isinstance(old, FunctionType) and isinstance(new, FunctionType):
        same = old.__code__.co_freevars == new.__code__.co_freevars
        if same and old.__code__ != new.__code__:
            old.__code__ = new.__code__
            old.__defaults__ = new.__defaults__
            old.__kwdefaults__ = new.__kwdefaults__


def _replace_constant(name: str, old: object, new: object) -> None:
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType) and vars(module).get(name) == old:
            setattr(module, name, new)


def _is_plain(value: object) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, (tuple, list, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, _PLAIN)


def _graft_migration(mutant: Mutant) -> None:
    migrations = sys.modules["leaseq.adapters.migrations"]
    in_order = migrations.in_order
    sound = mutant.path.read_text()

    def mutated(files: Iterable[tuple[str, str]]) -> object:
        return in_order((name, mutant.text if text == sound else text) for name, text in files)

    vars(migrations)["in_order"] = mutated


def run(mutants: list[Mutant], tests: list[str], told: Callable[[Outcome], None]) -> Trials:
    """Try each mutant with `tests`, and tell what became of it as soon as that is known."""
    trials = Trials(mutants, told)
    left_out = [f"-pno:{plugin}" for plugin in ("cacheprovider", "randomly", "xdist")]
    # What pytest says of the tests is said once for each mutant.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    trials.code = pytest.main([*left_out, "--tb=no", *tests], plugins=[trials])
    return trials
