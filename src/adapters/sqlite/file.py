"""The database file: private from its first moment on, and refused in words."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Final

from ...domain.errors import StorageError

_PRIVATE: Final = stat.S_IRUSR | stat.S_IWUSR

# To close any descriptor of a file ends every POSIX lock that the process has on it, those
# of SQLite included. So a file is opened by us only to make it, and nobody else can have it
# open until that is done.
_MAKING: Final = threading.Lock()


def prepare(path: str | os.PathLike[str]) -> Path:
    """
    Return the absolute path of a usable file; where there was none, of an empty private one.

    The file that is made has the mode 0600 whatever the umask, and SQLite gives the files
    beside it (`-wal`, `-shm`) the mode of the file. One that exists keeps its mode.

    Raises:
        StorageError: there can be no database, saying why.
    """
    if os.fspath(path) in {"", ":memory:"}:
        raise StorageError("name a file; what need not outlast the process goes to memory://")
    try:
        absolute = Path(path).absolute()
        _make_if_missing(absolute)
        _require_usable(absolute)
    except FileNotFoundError as error:
        raise StorageError("its folder does not exist") from error
    except OSError as error:
        raise StorageError(error.strerror or "the operating system refuses it") from error
    except ValueError as error:
        raise StorageError("its name holds what no file name may hold") from error
    return absolute


def _make_if_missing(path: Path) -> None:
    with _MAKING:
        try:
            made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, _PRIVATE)
        except FileExistsError:
            return
        try:
            os.fchmod(made, _PRIVATE)  # the umask may have taken even the owner's rights
        finally:
            os.close(made)


def _require_usable(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        raise StorageError("it is a folder" if path.is_dir() else "it is no regular file")
    effective = os.access in os.supports_effective_ids
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=effective):
        raise StorageError("this user may not read and write it")
    if not os.access(path.parent, os.W_OK | os.X_OK, effective_ids=effective):
        raise StorageError("this user may not make files beside it, as SQLite must")
