from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import pytest

from leaseq.domain.errors import StorageUnavailableError
from leaseq.entrypoints.host import Host, hosted, hosted_async
from leaseq.entrypoints.urls import MemoryUrl

URL = MemoryUrl(name="host-tests")
SOON = 10.0


@pytest.fixture
def host() -> Iterator[Host]:
    with hosted(URL) as host:
        yield host
    assert not [thread for thread in threading.enumerate() if thread.name == "leaseq-host"]


async def nothing(_: object) -> None:
    raise AssertionError("the result was delivered")


def test_holders_of_one_url_share_a_host(host: Host) -> None:
    with hosted(URL) as same, hosted(MemoryUrl(name="other")) as other:
        assert same is host
        assert other is not host

    assert not host.ended.done()


async def test_those_who_await_share_it_with_those_who_block(host: Host) -> None:
    async with hosted_async(URL) as same:
        assert same is host


def test_a_host_ends_with_its_last_holder() -> None:
    with ExitStack() as first:
        host = first.enter_context(hosted(URL))
        with hosted(URL):
            pass
        assert not host.ended.done()

    assert host.ended.done()
    with hosted(URL) as fresh:
        assert fresh is not host


def test_many_threads_get_one_host() -> None:
    begin = threading.Barrier(8)
    hosts: list[Host] = []

    def hold() -> None:
        begin.wait(SOON)
        with hosted(URL) as host:
            hosts.append(host)
            begin.wait(SOON)

    threads = [threading.Thread(target=hold) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)

    assert len(hosts) == 8
    assert len(set(map(id, hosts))) == 1
    assert hosts[0].ended.done()


def test_work_is_carried_out_on_the_hosts_thread(host: Host) -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert host.submit(where()).result(SOON) == "leaseq-host"


def test_an_error_of_the_work_is_its_callers(host: Host) -> None:
    async def fail() -> None:
        raise LookupError("not here")

    with pytest.raises(LookupError, match="not here"):
        host.submit(fail()).result(SOON)


def test_work_whose_caller_gives_up_is_cancelled(host: Host) -> None:
    begun, cancelled = threading.Event(), threading.Event()

    async def wait() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return "never"

    handed = host.submit(wait(), nothing)
    begun.wait(SOON)
    host.abandon(handed, nothing)

    assert cancelled.wait(SOON)


def test_a_result_that_comes_after_its_caller_gave_up_is_handled(host: Host) -> None:
    begun, handled = threading.Event(), threading.Event()

    async def finish_all_the_same() -> str:
        begun.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "done"

    async def handle(result: str) -> None:
        await asyncio.sleep(0)
        assert result == "done"
        handled.set()

    handed = host.submit(finish_all_the_same(), handle)
    begun.wait(SOON)
    host.abandon(handed, handle)

    assert handled.wait(SOON)


def test_a_result_that_its_caller_did_not_take_is_handled(host: Host) -> None:
    handled = threading.Event()

    async def work() -> str:
        return "done"

    async def handle(_: str) -> None:
        handled.set()

    handed = host.submit(work(), handle)
    handed.result(SOON)
    host.abandon(handed, handle)

    assert handled.wait(SOON)


def test_closing_breaks_off_what_is_under_way() -> None:
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    with hosted(URL) as host:
        handed = host.submit(wait())
        begun.wait(SOON)

    with pytest.raises(StorageUnavailableError, match="closed"):
        handed.result(SOON)


def test_an_ended_host_refuses_work() -> None:
    async def work() -> None:
        raise AssertionError("carried out")

    with hosted(URL) as host:
        pass

    with pytest.raises(StorageUnavailableError, match="closed"):
        host.submit(work())


async def test_a_caller_that_is_cancelled_while_opening_leaves_nothing() -> None:
    async def hold() -> None:
        async with hosted_async(URL):
            await asyncio.Event().wait()

    task = asyncio.create_task(hold())
    await asyncio.sleep(0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task

    assert not [thread for thread in threading.enumerate() if thread.name == "leaseq-host"]
