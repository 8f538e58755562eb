"""
Storages that other packages bring.

A package registers, in the group `leaseq.storages` and under the scheme of its URLs, a
function from such a URL to an async context manager of a `Storage`. It proves its
storage by `leaseq.testing.TaskRepositoryConformance`; `leaseq.storage` is all that it needs
to know of us.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from ..domain.errors import StorageError
from ..domain.ports import Storage

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

OpensStorage = Callable[[str], AbstractAsyncContextManager[Storage]]

_GROUP: Final = "leaseq.storages"


def is_registered(scheme: str) -> bool:
    """Return whether some installed package has a storage for URLs of this scheme."""
    return bool(_registered(scheme))


def registered_schemes() -> list[str]:
    """Return the schemes for which installed packages have storages, sorted."""
    return sorted({entry.name.lower() for entry in _entries()})


def opener(scheme: str) -> OpensStorage:
    """
    Return what opens storages of this scheme.

    Raises:
        StorageError: the package that registered it cannot be imported, or is gone; or
            several packages claim the scheme.
    """
    claims = _registered(scheme)
    if not claims:
        raise StorageError(f"no installed package has a storage for {scheme}:// URLs")
    if len(claims) > 1:
        values = " and ".join(sorted(claim.value for claim in claims))
        raise StorageError(f"{scheme}:// is claimed by {values}; uninstall all but one")
    [found] = claims
    try:
        opens: OpensStorage = found.load()
    except (ImportError, AttributeError) as error:
        raise StorageError(f"the storage {found.value} cannot be loaded: {error}") from error
    return opens


def _registered(scheme: str) -> list[EntryPoint]:
    """Return what is registered for a scheme in lower case; twice the same counts once."""
    return list(
        {entry.value: entry for entry in _entries() if entry.name.lower() == scheme}.values()
    )


def _entries() -> EntryPoints:
    # Costs a tenth of the start of a command, and few need it.
    from importlib.metadata import entry_points  # noqa: PLC0415

    return entry_points(group=_GROUP)
