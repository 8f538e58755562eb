"""
A storage held to a model of the life of a task, by courses of events that hypothesis makes.

Needs hypothesis, beside what `leaseq.testing` needs.
"""

import pytest

for module in ("comparing", "machine", "promises", "stage"):
    pytest.register_assert_rewrite(f"{__name__}.{module}")

from .playing import ModelConformance, play  # noqa: E402

__all__ = ["ModelConformance", "play"]
