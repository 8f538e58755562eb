"""The worker library and its command."""
