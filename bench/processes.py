"""Programs that are measured, each of which ends with its block."""

from __future__ import annotations

import math
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg import sql

from leaseq_process import clean_environment

_HERE = Path(__file__).parent
_SOON = 30.0


@contextmanager
def program(name: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program of this folder."""
    with subprocess.Popen(
        [sys.executable, str(_HERE / name), *arguments],
        env=clean_environment(PYTHONPATH=os.pathsep.join(sys.path[1:])),
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(_SOON)
            except subprocess.TimeoutExpired:
                process.kill()


def cpu_seconds(pid: int) -> float:
    """Return how much CPU time a process has used, its threads included; NaN but on Linux."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    except FileNotFoundError:
        return math.nan
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def new_schema(dsn: str) -> Iterator[str]:
    """Give the name of a schema that is not there, and drop it at the end."""
    schema = f"bench_{secrets.token_hex(4)}"
    try:
        yield schema
    finally:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema))
            )
