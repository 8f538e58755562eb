"""`python -m leaseq`: the `leaseq` command, with the interpreter named."""

from .entrypoints.cli.start import main

if __name__ == "__main__":
    main()
