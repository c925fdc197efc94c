"""Benchmarks: each a ratio against a peer in the same run, or a limit in seconds. `python -m bench` runs them."""
