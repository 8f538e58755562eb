import os
import signal
import threading
from queue import SimpleQueue

from leaseq.entrypoints.worker.stopping import caught
from worker_rig import SOON


def test_signals_are_caught_for_a_while_and_then_given_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    seen: SimpleQueue[int] = SimpleQueue()

    with caught(seen.put):
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)

    assert [seen.get(timeout=SOON), seen.get(timeout=SOON)] == [signal.SIGTERM, signal.SIGINT]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_outside_the_main_thread_nothing_is_caught() -> None:
    before = signal.getsignal(signal.SIGTERM)
    during: list[object] = []

    def look() -> None:
        with caught(lambda _: None):
            during.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join(SOON)

    assert during == [before]
