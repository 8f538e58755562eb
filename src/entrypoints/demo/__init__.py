"""`leaseq demo`: a queue at work, and a worker that is killed."""
