"""
The file: commits appended one after the other, each on the disk before it is acknowledged.

Nothing here is awaited, and nothing here may be called by two threads at once.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from leaseq.storage import RECORD_FORMAT, StorageError, StorageUnavailableError

from .contents import Commit, Contents, commit_of

_HEADER: Final = {"leaseq_toy": 1, "records": RECORD_FORMAT}
_PRIVATE: Final = 0o600


class Log:
    """A log and what it says. Another process that opens it meanwhile is refused."""

    def __init__(self, path: Path, *, compact_at: int) -> None:
        self.contents = Contents()
        self._path = path.absolute()
        self._compact_at = compact_at
        self._compacted_size = 0
        self._size = 0
        self._file = -1
        self._lock = -1
        self._broken = False

    def open(self) -> None:
        """
        Lock the file, make it where there is none, and read it.

        Raises:
            StorageUnavailableError: another process has it open.
            StorageError: it cannot be used, saying why.
        """
        try:
            # The log itself cannot be locked: compaction puts another file in its place.
            self._lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, _PRIVATE)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self._path.exists() and self._path.stat().st_size:
                self._file = os.open(self._path, os.O_RDWR | os.O_APPEND)
                self._replay()
            else:
                self._rewrite()
        except BlockingIOError:
            raise StorageUnavailableError(f"{self._path} is in use by another process") from None
        except OSError as error:
            raise StorageError(f"cannot use {self._path}: {error.strerror}") from error

    def close(self) -> None:
        """Close the file, and let others open it. A log that is not open is left alone."""
        for descriptor in (self._file, self._lock):
            if descriptor != -1:
                os.close(descriptor)
        self._file = self._lock = -1

    def commit(self, commit: Commit) -> None:
        """
        Make `commit` true, on the disk first.

        Raises:
            StorageUnavailableError: it could not be written, and nothing was changed.
        """
        if commit == Commit():
            return
        if self._broken or self._file == -1:
            raise StorageUnavailableError(f"{self._path} is closed, or could not be written")
        line = commit.line()
        try:
            _write(self._file, [line])
            os.fsync(self._file)
        except OSError as error:
            self._cut()
            raise StorageUnavailableError(f"cannot write: {error.strerror}") from error
        self._size += len(line)
        self.contents.apply(commit)

    def compact_if_grown(self) -> None:
        """
        Write the file anew, once it is twice what it was after the last time.

        Raises:
            StorageError: there is no room for it; the old file goes on.
        """
        if self._broken or self._size < max(self._compact_at, 2 * self._compacted_size):
            return
        try:
            self._rewrite()
        except OSError as error:
            raise StorageError(f"cannot compact {self._path}: {error.strerror}") from error

    def _replay(self) -> None:
        with self._path.open("rb") as lines:
            for number, line in enumerate(lines, start=1):
                if not line.endswith(b"\n") and number > 1:
                    break  # torn: whoever wrote it died before anybody was told
                try:
                    if number == 1:
                        self._check_header(line)
                    else:
                        self.contents.apply(commit_of(line))
                except (ValueError, LookupError, TypeError, RecursionError):
                    raise StorageError(f"line {number} of {self._path} is damaged") from None
                self._size += len(line)
        self._cut()

    def _check_header(self, line: bytes) -> None:
        header = json.loads(line)
        if header["leaseq_toy"] > _HEADER["leaseq_toy"] or header["records"] > RECORD_FORMAT:
            raise StorageError(f"{self._path} was written by a newer version")

    def _cut(self) -> None:
        """Take away what stands behind the last commit that is known to be whole."""
        self._broken = True  # unless what follows works: none may be told what may not last
        try:
            if os.fstat(self._file).st_size > self._size:
                os.ftruncate(self._file, self._size)
                os.fsync(self._file)
        except OSError:
            return
        self._broken = False

    def _rewrite(self) -> None:
        """Put a file in the place of the log that says the same and no more, in one step."""
        beside = self._path.with_name(f"{self._path.name}.new")
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
        new = os.open(beside, flags, _PRIVATE)
        try:
            lines = (commit.line() for commit in self.contents.commits() if commit != Commit())
            size = _write(new, [json.dumps(_HEADER).encode() + b"\n"]) + _write(new, lines)
            os.fsync(new)
            beside.replace(self._path)
        except OSError:
            os.close(new)
            beside.unlink(missing_ok=True)
            raise
        old, self._file = self._file, new
        self._size = self._compacted_size = size
        if old != -1:
            os.close(old)
        self._sync_folder()

    def _sync_folder(self) -> None:
        """Let the new name outlast a crash: else the old file came back, without what follows."""
        self._broken = True
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self._broken = False


def _write(file: int, lines: Iterable[bytes]) -> int:
    """Write all of `lines`, and return how many bytes they are."""
    size = 0
    for line in lines:
        rest = memoryview(line)
        while rest:  # a disk that is nearly full takes a part of it
            rest = rest[os.write(file, rest) :]
        size += len(line)
    return size
