"""What a task is and how it may change. Nothing here does I/O or reads a clock."""
