import threading

import pytest

from leaseq.entrypoints.worker.executors import HandlerThreads
from worker_rig import SOON


def ours() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name.startswith("leaseq-handler")]


def test_a_thread_is_used_again_when_it_is_idle() -> None:
    threads = HandlerThreads(8)

    names = {threads.submit(lambda: threading.current_thread().name).result(SOON) for _ in range(5)}

    assert names == {"leaseq-handler-1"}
    threads.close()


def test_as_many_calls_run_at_once_as_there_are_threads() -> None:
    threads = HandlerThreads(3)
    meet = threading.Barrier(3)

    futures = [threads.submit(lambda: meet.wait(SOON)) for _ in range(3)]

    assert sorted(future.result(SOON) for future in futures) == [0, 1, 2]
    threads.close()


def test_what_a_call_raises_belongs_to_whoever_waits_for_it() -> None:
    threads = HandlerThreads(1)

    def break_() -> None:
        raise SystemExit

    with pytest.raises(SystemExit):
        threads.submit(break_).result(SOON)
    assert threads.submit(lambda: "next").result(SOON) == "next"
    threads.close()


def test_closed_threads_end_after_what_they_do() -> None:
    threads = HandlerThreads(2)
    may_end = threading.Event()
    future = threads.submit(lambda: may_end.wait(SOON))

    threads.close()
    may_end.set()

    assert future.result(SOON)
    for thread in ours():
        thread.join(SOON)
    assert ours() == []


def test_a_thread_that_never_ends_does_not_keep_the_process() -> None:
    threads = HandlerThreads(1)
    may_end = threading.Event()
    future = threads.submit(lambda: may_end.wait(SOON))

    assert all(thread.daemon for thread in ours())
    may_end.set()
    future.result(SOON)
    threads.close()
