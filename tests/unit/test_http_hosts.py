from __future__ import annotations

import pytest

from leaseq.adapters.http.hosts import Hosts

NAMES = ["queue.example.org"]


@pytest.mark.parametrize(
    ("host", "on_loopback", "elsewhere", "elsewhere_with_names"),
    [
        ("localhost", True, True, True),
        ("LocalHost:7481", True, True, True),
        ("localhost.", True, True, True),
        ("127.0.0.1:80", True, True, True),
        ("127.9.9.9", True, True, True),
        ("[::1]:7481", True, True, True),
        ("10.0.0.1", False, True, True),
        ("[fe80::1]", False, True, True),
        ("evil.example", False, True, False),
        ("localhost.evil.example", False, True, False),
        ("127.0.0.1.evil.example", False, True, False),
        ("localhost@evil.example", False, True, False),
        ("evil.example#localhost", False, True, False),
        ("::1", False, True, False),
        ("", False, True, False),
        (None, False, True, False),
    ],
)
def test_only_names_that_nobody_can_rebind_are_answered_to(
    host: str | None,
    on_loopback: bool,  # noqa: FBT001
    elsewhere: bool,  # noqa: FBT001
    elsewhere_with_names: bool,  # noqa: FBT001
) -> None:
    assert Hosts().allow(host) == on_loopback
    assert Hosts(loopback=False).allow(host) == elsewhere
    assert Hosts(names=NAMES, loopback=False).allow(host) == elsewhere_with_names


def test_a_name_that_was_given_is_answered_to_anywhere() -> None:
    assert Hosts(names=NAMES).allow("Queue.Example.org:80")
    assert Hosts(names=NAMES, loopback=False).allow("queue.example.org.")
    assert not Hosts().allow("queue.example.org")
