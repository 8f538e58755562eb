"""What the demo plays with: a server in this process, and workers in their own."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ..server import Addresses, Server
from ..settings import ServerSettings, process_environment
from ..urls import Address
from .sample import PARENT, SERVER

_START_SECONDS: Final = 15
_STOP_SECONDS: Final = 10


@contextmanager
def server(settings: ServerSettings) -> Iterator[Address]:
    """
    Run a server in a thread, and give its address.

    Raises:
        StorageError: its storage cannot be opened.
        TimeoutError: it did not come up in time.
    """
    loop = asyncio.new_event_loop()
    ready: Future[Addresses] = Future()
    served = Server(settings, announce=ready.set_result)

    def run() -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: loop) as runner:
                runner.run(served.run())
        except BaseException as error:  # noqa: BLE001  it is told to whoever waits
            if not ready.done():
                ready.set_exception(error)

    thread = threading.Thread(target=run, name="leaseq-demo-server", daemon=True)
    thread.start()
    try:
        yield ready.result(_START_SECONDS).grpc
    finally:
        if thread.is_alive():
            loop.call_soon_threadsafe(served.stop)
        thread.join(_STOP_SECONDS)


class Worker:
    """A worker process of the demo."""

    def __init__(self, address: Address, log: Path) -> None:
        environment = {
            **process_environment(),
            SERVER: str(address),
            PARENT: str(os.getpid()),
        }
        with log.open("ab") as output:
            self._process = subprocess.Popen(  # noqa: S603  this very program
                [sys.executable, "-m", "leaseq", "worker", f"{__package__}.sample:worker"],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    @property
    def number(self) -> int:
        """Its process id."""
        return self._process.pid

    def kill(self) -> None:
        """End it as a power cut would."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ask it to stop, and insist if it does not."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.kill()
