"""A `TaskQueue` around the service: merges calls, and deals leases to those who wait."""
