from __future__ import annotations

import signal

pytest_plugins = ["postgres_provider.plugin", "postgres_roles", "pgbouncer"]


def pytest_configure() -> None:
    # Shells let what they start in the background ignore Ctrl-C, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
