from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

REPOSITORY = Path(__file__).parents[2]
SRC = REPOSITORY / "src"
GENERATED = SRC / "adapters" / "grpc" / "generated"
MODULES = sorted(
    path
    for folder in (SRC, REPOSITORY / "migrations", *REPOSITORY.glob("examples/*/src"))
    for path in folder.rglob("*.py")
    if path.parent != GENERATED
)
MODULE_LINES = 400
FUNCTION_LINES = 40


@pytest.fixture(scope="module")
def pyproject() -> dict[str, Any]:
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_pyproject_lists_every_package(pyproject: dict[str, Any]) -> None:
    folders = {path.parent for path in SRC.rglob("__init__.py")}
    expected = {".".join(("leaseq", *folder.relative_to(SRC).parts)) for folder in folders}

    listed = pyproject["tool"]["setuptools"]["packages"]

    assert sorted(listed) == sorted({*expected, "leaseq.migrations"})


def test_every_folder_with_code_is_a_package() -> None:
    folders = {path.parent for path in (*MODULES, *GENERATED.glob("*.py"))}

    namespaces = {folder for folder in folders if not (folder / "__init__.py").is_file()}

    assert namespaces == set()


def test_the_link_for_type_checkers_leads_to_src() -> None:
    link = REPOSITORY / "typings" / "leaseq"

    assert link.resolve() == SRC.resolve()


@pytest.mark.parametrize(
    ("library", "files", "statement"),
    [
        ("protobuf", "*_pb2.py", r"^# Protobuf Python Version: (\S+)$"),
        ("grpcio", "*_pb2_grpc.py", r"^GRPC_GENERATED_VERSION = '(\S+)'$"),
    ],
    ids=["protobuf", "grpcio"],
)
def test_the_generated_code_runs_with_the_oldest_library_we_allow(
    pyproject: dict[str, Any], library: str, files: str, statement: str
) -> None:
    allowed = next(
        requirement.specifier
        for requirement in map(Requirement, pyproject["project"]["dependencies"])
        if requirement.name == library
    )
    oldest = max(Version(clause.version) for clause in allowed if clause.operator == ">=")

    needed = [
        Version(version)
        for path in GENERATED.glob(files)
        for version in re.findall(statement, path.read_text(), re.MULTILINE)
    ]

    assert len(needed) == len(list(GENERATED.glob(files)))
    assert all(version <= oldest for version in needed)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_module_fits_on_a_few_screens(path: Path) -> None:
    lines = len(path.read_text().splitlines())

    assert lines < MODULE_LINES


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_a_function_fits_on_one_screen(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]

    lines = {f.name: (f.end_lineno or f.lineno) - f.lineno + 1 for f in functions}

    assert {name: count for name, count in lines.items() if count >= FUNCTION_LINES} == {}
