"""
Storages that other packages bring.

A package registers, in the group `leaseq.storages` and under the scheme of its URLs, a
function from such a URL to an async context manager of a `Storage`. It proves its
storage by `leaseq.testing.TaskRepositoryConformance`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from ..domain.errors import StorageError
from ..domain.ports import Storage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OpensStorage = Callable[[str], AbstractAsyncContextManager[Storage]]

_GROUP: Final = "leaseq.storages"


def is_registered(scheme: str) -> bool:
    """Return whether some installed package has a storage for URLs of this scheme."""
    return _registered(scheme) is not None


def opener(scheme: str) -> OpensStorage:
    """
    Return what opens storages of this scheme.

    Raises:
        StorageError: the package that registered it cannot be imported, or is gone.
    """
    found = _registered(scheme)
    if found is None:
        raise StorageError(f"no installed package has a storage for {scheme}:// URLs")
    try:
        opens: OpensStorage = found.load()
    except (ImportError, AttributeError) as error:
        raise StorageError(f"the storage {found.value} cannot be loaded: {error}") from error
    return opens


def _registered(scheme: str) -> EntryPoint | None:
    # Costs a tenth of the start of a command, and few need it.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return next(iter(entry_points(group=_GROUP, name=scheme)), None)
