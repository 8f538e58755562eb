"""The storage for one machine: an SQLite file."""
