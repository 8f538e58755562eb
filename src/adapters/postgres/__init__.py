"""The storage for many servers: a PostgreSQL database. Needs the extra `postgres`."""

from .storage import PostgresStorage, open_postgres

__all__ = ["PostgresStorage", "open_postgres"]
