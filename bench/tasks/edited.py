"""Prints the number of its edit, and waits to be stopped."""

import time

EDIT = 0

print(f"{time.monotonic():.6f} edit {EDIT}", flush=True)
while True:
    time.sleep(1)
