"""What every storage and every `TaskQueue` must do, as tests to inherit."""
