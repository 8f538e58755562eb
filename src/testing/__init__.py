"""For people who add a storage: the conformance suites and their builders. Needs pytest."""
