from __future__ import annotations

pytest_plugins = ["postgres_provider.plugin", "postgres_roles", "pgbouncer"]
