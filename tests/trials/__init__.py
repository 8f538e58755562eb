"""
What a queue must live through, written once for two lengths.

`tests/soak` runs each at full length, `tests/integration` the cheap ones in short.
"""
