"""
Flip each comparison, boundary and decision of a package once, and see a test fail.

    python scripts/mutants.py src/domain tests/unit [--jobs N] [--only TEXT]

Each mutant is a copy of the package with one node changed: a comparison turned or moved
by its edge, `and` for `or`, a `not` dropped, a sum for a difference, a whole number one
more. The tests then run against the copy; a mutant that they pass has survived. The last
line counts; the exit status is 1 where one survived that is not explained in
scripts/mutants-explained.txt (a line each: `path:line: what  # why it changes nothing`).
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPLAINED = ROOT / "scripts" / "mutants-explained.txt"

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
TIMEOUT = 120


@dataclass(frozen=True)
class Mutant:
    """One change of one file, given as the text of the whole file."""

    path: Path
    line: int
    what: str
    text: str

    @property
    def name(self) -> str:
        """How reports and explanations call it."""
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.what}"


class Flips(ast.NodeVisitor):
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


def mutants(package: Path) -> Iterator[Mutant]:
    """Yield every mutant of every module below `package`, in order."""
    for path in sorted(package.rglob("*.py")):
        source = path.read_text()
        flips = Flips()
        flips.visit(ast.parse(source))
        starts = [0]
        for line in source.encode().splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        data = source.encode()
        for node, replacement, what in flips.found:
            assert node.end_lineno is not None
            assert node.end_col_offset is not None
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            text = (data[:begin] + replacement.encode() + data[end:]).decode()
            yield Mutant(path=path, line=node.lineno, what=what, text=text)


def survives(mutant: Mutant, tests: list[str]) -> bool:
    """Whether the tests pass with the mutant in the place of its module."""
    with tempfile.TemporaryDirectory(prefix="leaseq-mutant-") as folder:
        copy = Path(folder) / "leaseq"
        shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
        (copy / mutant.path.relative_to(ROOT / "src")).write_text(mutant.text)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no"]
        command += ["-p", "no:cacheprovider", "-p", "no:randomly", *tests]
        # A path on PYTHONPATH comes before the import hook of the editable install.
        environment = {**os.environ, "PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            run = subprocess.run(
                command,
                cwd=ROOT,
                env=environment,
                capture_output=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return run.returncode == 0


def main() -> int:
    """Run it all; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("package", type=Path)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    chosen = [m for m in mutants(ROOT / wanted.package) if wanted.only in m.name]
    explained = {
        line.split("  #")[0].strip() for line in EXPLAINED.read_text().splitlines() if "  #" in line
    }
    with ThreadPoolExecutor(wanted.jobs) as pool:
        outcomes = list(pool.map(lambda m: survives(m, wanted.tests), chosen))
    survivors = [m.name for m, lived in zip(chosen, outcomes, strict=True) if lived]
    unexplained = [name for name in survivors if name not in explained]
    for name in survivors:
        print(f"{'explained' if name in explained else 'SURVIVED'}  {name}")
    killed = len(chosen) - len(survivors)
    known = len(survivors) - len(unexplained)
    print(f"mutants: {killed} killed, {len(unexplained)} survived, {known} explained")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
