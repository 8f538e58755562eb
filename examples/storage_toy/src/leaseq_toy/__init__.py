"""A storage for leaseq in one append-only file."""

from .opening import open_toy, open_url

__all__ = ["open_toy", "open_url"]
