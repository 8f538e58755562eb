"""
Runs a PostgreSQL server for as long as pytest lives, then stops it.

A program of its own, with nothing but the standard library: `kill -9` gives pytest no chance to
clean up, but it closes the pipe that is our standard input. (A parent-death signal of the
kernel would do on Linux only, would be forgotten when the server's user is set, and would leave
the folder behind.) The pipe may be held open by a process that pytest forked, so we also
look whether our parent is still the one that started us.

    keeper.py PARENT_PID FOLDER USER_ID GROUP_ID COMMAND...
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

FAREWELL = b"I clean up myself"
_LOOK_SECONDS = 1.0
# From a fast shutdown (sessions are ended) over an immediate one to the kernel's.
_SIGNALS = (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL)
_STOP_SECONDS = 10


def main() -> None:
    """Keep the server until there is nobody left to keep it for."""
    parent, folder, user, group, *command = sys.argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    farewell = b""
    with (Path(folder) / "server.log").open("ab") as log:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            user=int(user) if user else None,
            group=int(group) if group else None,
            extra_groups=[] if user else None,
        )
    try:
        while server.poll() is None and os.getppid() == int(parent):
            if select.select([sys.stdin], [], [], _LOOK_SECONDS)[0]:
                farewell = os.read(sys.stdin.fileno(), len(FAREWELL))
                break
    finally:
        _stop(server)
        if not farewell and os.getppid() != int(parent):
            shutil.rmtree(folder, ignore_errors=True)


def _stop(server: subprocess.Popen[bytes]) -> None:
    for number in _SIGNALS:
        if server.poll() is not None:
            return
        server.send_signal(number)
        try:
            server.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            continue


if __name__ == "__main__":
    main()
