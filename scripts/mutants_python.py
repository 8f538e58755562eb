"""
What may be flipped in Python.

A comparison is turned or moved by its edge, `and` is `or`, a `not` is dropped, a sum is a
difference, a whole number is one more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mutants_edits import Edit, span_in_bytes

SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
FLIPPED = {"<": "<=", ">": ">=", "==": "!=", "is": "is not", "in": "not in"}
FLIPPED |= {flipped: sign for sign, flipped in FLIPPED.items()}
ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.LShift: ">>",
}


def edits_of_code(source: str) -> Iterator[tuple[ast.expr, Edit]]:
    """Yield each flip of a module, with what it replaces; offsets in bytes."""
    flips = _Flips()
    flips.visit(ast.parse(source))
    for node, text, what in flips.found:
        begin, end = span_in_bytes(source, node)
        yield node, Edit(begin, end, text, what)


class _Flips(ast.NodeVisitor):
    """Collects (node, replacement source, description) of a module."""

    def __init__(self) -> None:
        self.found: list[tuple[ast.expr, str, str]] = []

    def visit_Compare(self, node: ast.Compare) -> None:
        """Turn each comparison of a chain."""
        for index, operator in enumerate(node.ops):
            flipped = FLIPPED[SIGNS[type(operator)]]
            parts = [ast.unparse(node.left)]
            for other, (op, right) in enumerate(zip(node.ops, node.comparators, strict=True)):
                sign = flipped if other == index else SIGNS[type(op)]
                parts += [sign, ast.unparse(right)]
            self._add(node, " ".join(parts), f"{ast.unparse(node)} -> {flipped} ({index + 1})")
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Use `and` for `or` and the other way round."""
        other = " or " if isinstance(node.op, ast.And) else " and "
        self._add(node, other.join(f"({ast.unparse(value)})" for value in node.values), "and/or")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        """Drop a `not`."""
        if isinstance(node.op, ast.Not):
            self._add(node, f"bool({ast.unparse(node.operand)})", "not dropped")
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        """Use another sign."""
        if type(node.op) in ARITHMETIC and not isinstance(node.left, ast.JoinedStr):
            sign = ARITHMETIC[type(node.op)]
            source = f"({ast.unparse(node.left)}) {sign} ({ast.unparse(node.right)})"
            self._add(node, source, f"{ast.unparse(node)} -> {sign}")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Move a whole number by one."""
        if type(node.value) is int:
            self._add(node, str(node.value + 1), f"{node.value} -> {node.value + 1}")

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Swap the two outcomes."""
        swapped = (
            f"{ast.unparse(node.orelse)} if {ast.unparse(node.test)} else {ast.unparse(node.body)}"
        )
        self._add(node, swapped, "outcomes swapped")
        self.generic_visit(node)

    def _add(self, node: ast.expr, source: str, what: str) -> None:
        self.found.append((node, f"({source})", what[:120]))
