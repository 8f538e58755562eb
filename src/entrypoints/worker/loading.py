"""Finds a worker by name, for `leaseq worker module:worker`."""

from __future__ import annotations

import importlib
import os
import sys
from types import ModuleType

from .handlers import LoadError
from .worker import Worker


def load_worker(name: str) -> Worker:
    """
    Import `package.module:attribute` and return the Worker it names.

    Modules are looked for in the current folder first, as `python -m` does.

    Raises:
        LoadError: `name` has another form, or there is no such module, no such attribute,
            or something else than a Worker in it. What the module itself raises when it
            is imported is passed on.
    """
    module_name, colon, attribute = name.partition(":")
    if not (colon and attribute and module_name and not module_name.startswith(".")):
        raise LoadError(f'a worker is named as "package.module:attribute", not {name!r}')
    module = _import(module_name)
    found: object = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise LoadError(f"module {module_name} has no {attribute!r}{_hint(module)}")
        found = getattr(found, part)
    if not isinstance(found, Worker):
        raise LoadError(f"{name} is a {type(found).__name__}, not a leaseq.Worker{_hint(module)}")
    return found


def _import(name: str) -> ModuleType:
    folder = os.getcwd()  # noqa: PTH109  sys.path holds texts
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            raise LoadError(
                f"there is no module {missing}, neither in {folder} nor where Python looks"
            ) from None
        raise


def _hint(module: ModuleType) -> str:
    workers = [name for name, value in vars(module).items() if isinstance(value, Worker)]
    return f"; its workers: {', '.join(workers)}" if workers else "; it holds no worker"
