"""`python -m leaseq`: the `leaseq` command."""

from __future__ import annotations

from .entrypoints.cli.main import main

main()
