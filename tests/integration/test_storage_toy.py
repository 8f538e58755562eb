"""The example of a storage, installed as the separate package that it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

import leaseq
from grpc_doors import AioClientConformance, BlockingClientConformance
from leaseq.entrypoints.third_party import opener
from leaseq.testing import Connect, Features
from leaseq_process import leaseq_server, run_leaseq

# Each process that runs tests installs the example once, and pip takes its time.
pytestmark = pytest.mark.timeout(180)

EXAMPLE = Path(__file__).parents[2] / "examples" / "storage_toy"
_NEVER_COPIED = shutil.ignore_patterns("build", "*.egg-info", "__pycache__", ".*")


@pytest.fixture(scope="session")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the example, so that building it leaves nothing in the repository."""
    copy = tmp_path_factory.mktemp("example") / "storage_toy"
    shutil.copytree(EXAMPLE, copy, ignore=_NEVER_COPIED)
    return copy


@pytest.fixture(scope="session")
def site(copied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip has installed the example, and nothing else."""
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index", "--root-user-action=ignore"]
    subprocess.run([*pip, *offline, "--target", target, copied], check=True, timeout=120)
    return target


@pytest.fixture(scope="module")
def installed(site: Path) -> Iterator[Path]:
    """The example, there to import until this module's tests are over."""
    sys.path.insert(0, str(site))
    yield site
    sys.path.remove(str(site))
    for name in [name for name in sys.modules if name.partition(".")[0] == "leaseq_toy"]:
        del sys.modules[name]


def in_site(site: Path) -> dict[str, str]:
    """Return the environment variables by which other processes see the example."""
    return {"PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}


SUITES = [
    f"tests/test_conformance.py::Test{name}" for name in ("Tasks", "Queues", "Services", "Model")
]


@pytest.mark.timeout(540)
@pytest.mark.parametrize("part", [*SUITES, "tests/test_log.py", "tests/test_kill.py"])
def test_it_passes_the_suites_and_its_own_tests(site: Path, copied: Path, part: str) -> None:
    # What is tested is what was installed.
    shutil.rmtree(copied / "src", ignore_errors=True)

    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", part],
        cwd=copied,
        env={**os.environ, **in_site(site)},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )

    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


class _OnTheToy:
    features = Features(durable=True, shared=False)

    @pytest.fixture
    def connect(self, installed: Path, tmp_path: Path) -> Connect:
        del installed
        return partial(opener("toy"), f"toy:///{tmp_path}/tasks.log")


class TestAioClientOnTheToy(_OnTheToy, AioClientConformance):
    pass


class TestBlockingClientOnTheToy(_OnTheToy, BlockingClientConformance):
    pass


def test_its_url_is_taken_by_clients_and_workers(installed: Path, tmp_path: Path) -> None:
    del installed
    url = f"toy:///{tmp_path}/tasks.log"
    with leaseq.connect(url) as client:
        task = client.enqueue("greet", {"name": "Ada"}).task

    worker = leaseq.Worker(url)

    @worker.task("greet")
    def greet(payload: dict[str, str], context: leaseq.TaskContext) -> str:
        del context
        worker.stop()
        return payload["name"]

    worker.run()

    with leaseq.connect(url) as client:
        assert client.get(task.id).result == '"Ada"'


def test_its_url_is_taken_by_the_server_and_the_command(site: Path, tmp_path: Path) -> None:
    url = f"toy:///{tmp_path}/tasks.log"
    to_server = ("enqueue", "--type", "greet", "--json", "{}")

    with leaseq_server("--storage", url, cwd=tmp_path, env=in_site(site)) as server:
        enqueued = run_leaseq(*to_server, "--server", server.url, cwd=tmp_path)
        rival = run_leaseq(
            "tasks", "list", "--server", url, "--json", cwd=tmp_path, env=in_site(site)
        )
        assert server.stop() == 0
    listed = run_leaseq("tasks", "list", "--server", url, "--json", cwd=tmp_path, env=in_site(site))

    assert enqueued.returncode == 0, enqueued.stderr
    assert rival.returncode == 1
    assert "in use by another process" in rival.stderr
    assert listed.returncode == 0, listed.stderr
    assert '"greet"' in listed.stdout


def test_an_unknown_scheme_is_answered_with_its_own_among_the_known(
    site: Path, tmp_path: Path
) -> None:
    served = run_leaseq("server", "--storage", "toi:///x", cwd=tmp_path, env=in_site(site))
    listed = run_leaseq("tasks", "list", "--server", "toi:///x", cwd=tmp_path, env=in_site(site))

    assert (served.returncode, listed.returncode) == (2, 2)
    assert "memory://NAME, toy://..." in " ".join(served.stderr.split())
    assert "grpc://" not in served.stderr
    assert "toy://..." in listed.stderr
