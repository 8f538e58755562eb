"""leaseq: a durable, distributed task queue."""
