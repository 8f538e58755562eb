"""Tasks kept in PostgreSQL."""
