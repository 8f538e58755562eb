"""Where a mutant differs from what it is made of."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """`text` in the place of what stands from `begin` to `end`."""

    begin: int
    end: int
    text: str
    what: str


def span_in_bytes(source: str, node: ast.expr) -> tuple[int, int]:
    """Return where `node` begins and ends in `source`."""
    assert node.end_lineno is not None
    assert node.end_col_offset is not None
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return (
        starts[node.lineno - 1] + node.col_offset,
        starts[node.end_lineno - 1] + node.end_col_offset,
    )
