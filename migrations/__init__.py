"""The SQL that makes the schema, one folder a database, as package data."""
