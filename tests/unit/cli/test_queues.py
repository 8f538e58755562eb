from __future__ import annotations

import pytest

from cli_runs import Run, enqueue, give_up, lease
from leaseq.entrypoints.connection import Connection


def test_queues_are_listed_with_their_depths(run: Run, connection: Connection) -> None:
    enqueue(connection, 2, queue="a")
    give_up(connection, queue="b")

    ran = run("queues", "list")
    document = run("queues", "list", "--json").document

    assert ran.rows[0][:3] == ["queue", "state", "queued"]
    assert [row[:3] for row in ran.rows[1:]] == [["a", "active", "2"], ["b", "active", "0"]]
    assert document["queues"][0]["depths"] == {"queued": {"count": 2, "exact": True}}


def test_a_queue_is_paused_and_resumed(run: Run, connection: Connection) -> None:
    enqueue(connection, queue="q")

    paused = run("queues", "pause", "q")
    listed = run("queues", "list", "--json").document
    nothing = lease(connection, queue="q")
    resumed = run("queues", "resume", "q", "--json")

    assert (paused.out, paused.err) == ("paused q\n", "")
    assert listed["queues"][0]["paused"] is True
    assert nothing == []
    assert resumed.document == {"name": "q", "paused": False}


@pytest.mark.parametrize("verb", ["pause", "resume"])
def test_a_queue_that_nobody_has_used_is_warned_about(verb: str, run: Run) -> None:
    first = run("queues", verb, "nosuch", "--json")
    second = run("queues", "pause", "nosuch")
    third = run("queues", "resume", "nosuch")

    assert first.code == 0
    assert first.document["name"] == "nosuch"
    assert "nothing was known of the queue nosuch" in first.err
    assert third.err == ""
    assert third.code == second.code == 0
