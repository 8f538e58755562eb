"""What a worker refuses when it is made."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from leaseq.domain.errors import InvalidArgumentError
from leaseq.entrypoints.worker import Worker
from leaseq.entrypoints.worker.worker import new_worker_id


@pytest.mark.parametrize(
    "make",
    [
        lambda: Worker("memory://", queues=["no name"]),
        lambda: Worker("memory://", queues=["q"] * 101),
        lambda: Worker("memory://", lease_duration=0.5),
        lambda: Worker("memory://", lease_duration=timedelta(days=1)),
        lambda: Worker("nonsense"),
    ],
    ids=["queue", "queues", "short lease", "long lease", "url"],
)
def test_what_the_queue_would_refuse_is_refused_at_once(make: Callable[[], Worker]) -> None:
    with pytest.raises(InvalidArgumentError):
        make()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"concurrency": 0}, "concurrency must be from 1 to 1000"),
        ({"concurrency": 1001}, "concurrency must be from 1 to 1000"),
        ({"grace": -1}, "grace must not be negative"),
        ({"lease_duration": float("nan")}, "lease_duration must be finite"),
        ({"grace": float("inf")}, "grace must be finite"),
        ({"grace": 1e30}, "grace must be less than"),
    ],
    ids=repr,
)
def test_settings_out_of_bounds_are_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Worker("memory://", **options)


def test_spans_are_numbers_or_timedeltas() -> None:
    Worker("memory://", lease_duration=2, grace=timedelta(minutes=1))

    with pytest.raises(TypeError, match="lease_duration must be a timedelta or a number"):
        Worker("memory://", lease_duration="30s")  # type: ignore[arg-type]


def test_one_text_is_no_list_of_queues() -> None:
    with pytest.raises(TypeError, match="queues must be a list of names"):
        Worker("memory://", queues="emails")


def test_a_decorated_function_stays_what_it_is() -> None:
    worker = Worker("memory://")

    @worker.task("double")
    def double(payload: Any) -> Any:
        return 2 * payload

    assert double(2) == 4


def test_a_worker_id_is_a_name_and_new_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Zoë's laptop.local" * 10)

    first, second = new_worker_id(), new_worker_id()

    assert first != second
    assert first.startswith("Zo-s-laptop.local")
    assert len(first) <= 100
    Worker("memory://", queues=[first])
