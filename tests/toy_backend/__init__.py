"""A backend of plain processes with its state in files: the smallest that passes the common cases of `tests/contract`."""
