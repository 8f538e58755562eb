"""
Flip each comparison, boundary and decision of a package once, and see a test fail.

    python scripts/mutants.py src/domain tests/unit [--only TEXT]
    python scripts/mutants.py --sql src/adapters/sqlite tests/integration/test_sqlite_storage.py

Each mutant is the package with one thing changed: of its Python (`mutants_python.py`), or, with
`--sql`, of its SQL (`mutants_sql.py`). The tests then run with it; a mutant that they pass has
survived. The last line counts; the exit status is 1 where one survived that is not explained
in scripts/mutants-explained.txt (a line each: its name, `  #`, why it changes nothing), or
where a test fails without any mutant. What else is given, such as `-k`, is for pytest.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from mutants_edits import Edit
from mutants_python import edits_of_code
from mutants_sql import edits, edits_of_statements
from mutants_trials import Mutant, Outcome, run

ROOT = Path(__file__).resolve().parent.parent
EXPLAINED = ROOT / "scripts" / "mutants-explained.txt"
TIMEOUT = 900


@dataclass(frozen=True)
class _Place:
    """What a change stands in, and where it shows; see `Mutant`."""

    name: str = ""
    lines: frozenset[int] | None = None
    at_import: bool = False


def mutants(package: Path, *, sql: bool) -> Iterator[Mutant]:
    """Yield every mutant of every file below `package`, in order."""
    for path in sorted(package.rglob("*.sql" if next(package.glob("*.sql"), None) else "*.py")):
        source = path.read_text()
        data = source.encode()
        seen: Counter[str] = Counter()
        for place, edit in _edits(path, source, sql=sql):
            name = f"{path.relative_to(ROOT)}:{place.name}: {edit.what}"
            seen[name] += 1
            if seen[name] > 1:
                name += f" #{seen[name]}"
            # As many lines as before, lest all functions that follow be others.
            lines = "\n" * (data[edit.begin : edit.end].count(b"\n") - edit.text.count("\n"))
            new = (edit.text + lines).encode()
            text = (data[: edit.begin] + new + data[edit.end :]).decode()
            at_import = place.at_import and not sql
            yield Mutant(path=path, name=name, text=text, lines=place.lines, at_import=at_import)


def _edits(path: Path, source: str, *, sql: bool) -> Iterator[tuple[_Place, Edit]]:
    """Yield each change of a file, with offsets in bytes."""
    if path.suffix == ".sql":
        for edit in edits(source):
            begin, end = (len(source[:offset].encode()) for offset in (edit.begin, edit.end))
            yield _Place(), Edit(begin, end, edit.text, edit.what)
        return
    tree = ast.parse(source)
    for node, edit in edits_of_statements(source) if sql else edits_of_code(source):
        yield _place(tree, node), edit


def _place(tree: ast.Module, node: ast.expr) -> _Place:
    names: list[str] = []
    functions: list[str] = []
    constant = None
    inner: ast.AST | None = tree
    while inner is not None:
        around = [
            child
            for child in ast.iter_child_nodes(inner)
            if isinstance(child, ast.stmt)
            and child.lineno <= node.lineno <= (child.end_lineno or 0)
        ]
        inner = around[0] if around else None
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
            functions.append(inner.name)
            names.append(inner.name)
        elif isinstance(inner, ast.ClassDef):
            names.append(inner.name)
        elif isinstance(inner, ast.Assign | ast.AnnAssign):
            [constant, *_] = _targets(inner)
    if functions and functions != ["__init__"]:
        lines = frozenset(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        # What a function made at import goes on as it was made.
        return _Place(".".join(names), lines, at_import=len(functions) > 1)
    name = ".".join([*names, constant] if constant else names)
    # Others may import what is not private.
    uses = _uses(tree, constant) if constant and constant.startswith("_") else None
    return _Place(name, uses or None, at_import=not functions)


def _uses(tree: ast.Module, constant: str) -> frozenset[int]:
    """
    Return the lines of functions that use a constant, or what is made of it.

    What is made of it when an object is made is an attribute of that object.
    """
    known = {constant}
    before = 0
    while before < len(known):
        before = len(known)
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign | ast.AnnAssign) and known & _mentioned(node.value):
                known.update(_targets(node))
    return frozenset(
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        and function.name != "__init__"
        for node in ast.walk(function)
        if isinstance(node, ast.Name | ast.Attribute) and known & _mentioned(node)
    )


def _mentioned(node: ast.AST | None) -> set[str]:
    inside = list(ast.walk(node)) if node else []
    names = {n.id for n in inside if isinstance(n, ast.Name)}
    return names | {n.attr for n in inside if isinstance(n, ast.Attribute)}


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return [t.attr if isinstance(t, ast.Attribute) else ast.unparse(t) for t in targets]


def survives(mutant: Mutant, tests: list[str]) -> bool:
    """Whether tests pass in a Python of their own, with the mutant in the place of its module."""
    with tempfile.TemporaryDirectory(prefix="leaseq-mutant-") as folder:
        copy = Path(folder) / "leaseq"
        shutil.copytree(ROOT / "src", copy)
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
    parser.add_argument("--sql", action="store_true", help="mutate SQL, and no Python")
    parser.add_argument("--only", action="append", help="mutants with this in their names")
    parser.add_argument("--postgres", action="store_true", help="keep a server for all the runs")
    parser.add_argument("--list", action="store_true", help="list the mutants, and run nothing")
    wanted, options = parser.parse_known_args()
    tests = [*wanted.tests, *options]
    chosen = [
        mutant
        for mutant in mutants(ROOT / wanted.package, sql=wanted.sql)
        if any(text in mutant.name for text in wanted.only or [""])
    ]
    explained = {
        line.split("  #")[0].strip() for line in EXPLAINED.read_text().splitlines() if "  #" in line
    }
    if wanted.list:
        print(*(mutant.name for mutant in chosen), sep="\n")
        return 0
    with _one_postgres() if wanted.postgres else nullcontext():
        return _judge(chosen, tests, explained)


@contextmanager
def _one_postgres() -> Iterator[None]:
    sys.path.insert(0, str(ROOT / "tests"))
    from postgres_provider.sources import (  # noqa: PLC0415  of the tests, and needed for few runs
        URL_VARIABLE,
        running_postgres,
    )

    with running_postgres() as server:
        os.environ[URL_VARIABLE] = server.url
        yield


def _judge(chosen: list[Mutant], tests: list[str], explained: set[str]) -> int:
    # pytest takes the standard output for itself.
    output = os.fdopen(os.dup(1), "w", buffering=1)
    killed: list[str] = []
    survivors: list[str] = []

    def told(outcome: Outcome) -> None:
        mutant = outcome.mutant
        killer = outcome.killer
        if killer is None and mutant.at_import and not survives(mutant, outcome.relevant or tests):
            killer = "a run of its own"
        if killer is not None:
            killed.append(mutant.name)
            print(f"killed     {mutant.name}  by {killer.split('::')[-1]}", file=output)
            return
        survivors.append(mutant.name)
        word = "explained" if mutant.name in explained else "SURVIVED "
        print(f"{word}  {mutant.name}", file=output)

    trials = run(chosen, tests, told)
    for test in trials.unsound:
        print(f"FAILS without any mutant: {test}", file=output)
    known = sum(name in explained for name in survivors)
    print(
        f"mutants: {len(killed)} killed, {len(survivors)} survived ({known} explained)", file=output
    )
    if len(killed) + len(survivors) < len(chosen):
        print(
            f"pytest ended with {trials.code} before all of {len(chosen)} were tried", file=output
        )
        return 2
    return 1 if known < len(survivors) or trials.unsound else 0


if __name__ == "__main__":
    sys.exit(main())
