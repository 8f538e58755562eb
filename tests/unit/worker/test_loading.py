import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from leaseq.entrypoints.worker import LoadError, Worker, load_worker


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(folder: Path, text: str, name: str = "shop_tasks.py") -> None:
    (folder / name).write_text(text)


WORKER = """
import leaseq.entrypoints.worker
worker = leaseq.entrypoints.worker.Worker("memory://loading")
other = 1
"""


def test_a_worker_is_found_in_the_current_folder(folder: Path) -> None:
    write(folder, WORKER)

    assert isinstance(load_worker("shop_tasks:worker"), Worker)


def test_a_worker_may_be_an_attribute_of_something(folder: Path) -> None:
    write(folder, WORKER + "class App:\n    runner = worker\n")

    assert isinstance(load_worker("shop_tasks:App.runner"), Worker)


@pytest.mark.parametrize("name", ["", "shop_tasks", "shop_tasks:", ":worker", ".shop_tasks:worker"])
def test_a_name_of_another_form_is_refused(folder: Path, name: str) -> None:
    write(folder, WORKER)

    with pytest.raises(LoadError, match=r"a worker is named as \"package.module:attribute\""):
        load_worker(name)


def test_a_module_that_is_not_there_is_named(folder: Path) -> None:
    with pytest.raises(LoadError, match=f"there is no module shop_tasks, neither in {folder}"):
        load_worker("shop_tasks:worker")


@pytest.mark.usefixtures("folder")
def test_a_package_that_is_not_there_is_named() -> None:
    with pytest.raises(LoadError, match="there is no module shop, "):
        load_worker("shop.tasks:worker")


def test_a_module_that_imports_what_is_not_there_fails_by_its_own_error(folder: Path) -> None:
    write(folder, "import no_such_dependency")

    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        load_worker("shop_tasks:worker")


def test_an_attribute_that_is_not_there_is_answered_with_those_that_are(folder: Path) -> None:
    write(folder, WORKER)

    with pytest.raises(LoadError, match="has no 'app'; its workers: worker"):
        load_worker("shop_tasks:app")


def test_something_else_than_a_worker_is_refused(folder: Path) -> None:
    write(folder, "worker = 3")

    with pytest.raises(LoadError, match="is a int, not a leaseq"):
        load_worker("shop_tasks:worker")
