from __future__ import annotations

from collections import Counter

import pytest

from leaseq.testing import (
    QueueRepositoryConformance,
    TaskQueueConformance,
    TaskRepositoryConformance,
)

SUITES = [TaskRepositoryConformance, QueueRepositoryConformance, TaskQueueConformance]


@pytest.mark.parametrize("suite", SUITES)
def test_no_test_of_a_suite_hides_another(suite: type) -> None:
    names = Counter(
        name for class_ in suite.__mro__ for name in vars(class_) if name.startswith("test_")
    )

    hidden = {name for name, number in names.items() if number > 1}

    assert hidden == set()


@pytest.mark.parametrize("suite", SUITES)
def test_a_suite_is_not_collected_by_itself(suite: type) -> None:
    assert not suite.__name__.startswith("Test")
