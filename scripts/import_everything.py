"""
Import every module of the installed leaseq: `import_everything.py REPOSITORY`.

Fails when a file of the repository's packages is missing from the installation, which an
editable install hides.
"""

import importlib
import sys
from importlib import resources
from pathlib import Path

import leaseq

SHIPPED = {".py", ".pyi", ".sql", ".typed"}


def shipped_files(folder: Path) -> set[str]:
    """Return the files below `folder` that a wheel must hold, relative to it."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in SHIPPED}


def module_name(file: str) -> str:
    """Return the dotted name of the module that `file`, relative to the package, holds."""
    parts = ("leaseq", *Path(file).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def main() -> None:
    """Compare the files, then import."""
    repository = Path(sys.argv[1])
    installed = Path(leaseq.__file__).parent
    if installed == repository / "src":
        sys.exit(f"leaseq was imported from {installed}, not from the wheel")
    folders = {"src": installed, "migrations": Path(str(resources.files("leaseq.migrations")))}
    for name, folder in folders.items():
        if missing := shipped_files(repository / name) - shipped_files(folder):
            sys.exit(f"missing from the wheel: {', '.join(sorted(missing))}")
    modules = {module_name(file) for file in shipped_files(installed) if file.endswith(".py")}
    for module in sorted(modules):
        if not module.endswith(".__main__"):
            importlib.import_module(module)
    print(f"{len(modules)} modules imported from {installed}")


if __name__ == "__main__":
    main()
