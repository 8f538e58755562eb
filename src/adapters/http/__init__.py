"""The queue over HTTP: enqueue, look at a task, health."""
