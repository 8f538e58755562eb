"""
A storage held to a model of the life of a task, by courses of events that hypothesis makes.

Needs hypothesis, beside what `leaseq.testing` needs.
"""

import pytest

pytest.register_assert_rewrite(f"{__name__}.machine", f"{__name__}.promises", f"{__name__}.stage")

from .playing import ModelConformance, play  # noqa: E402

__all__ = ["ModelConformance", "play"]
