"""The `leaseq` command. The only package that knows typer."""
