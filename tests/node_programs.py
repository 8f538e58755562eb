"""Node.js and packages for it, where they are at hand."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_NPM_TAKES = 90.0
"""Seconds at most; two when nobody else wants the processor or the network."""


def install_packages(folder: Path, command: str) -> None:
    """Run this npm command in a folder; skips the test where npm is not here, or gets nothing."""
    if shutil.which("npm") is None or shutil.which("node") is None:
        pytest.skip("needs node and npm, which are not here")
    # Tests may run where no registry can be reached, and should then soon go on.
    quick = "--no-audit --no-fund --prefer-offline --fetch-retries=0 --fetch-timeout=10000"
    try:
        installed = subprocess.run(
            ["sh", "-euc", f"exec {command.strip()} {quick}"],
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_NPM_TAKES,
        )
    except subprocess.TimeoutExpired:
        pytest.skip("needs packages that npm did not get in time")
    if installed.returncode:
        pytest.skip(f"needs packages that npm could not get: {installed.stderr}")
