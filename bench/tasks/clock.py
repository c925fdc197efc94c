"""Prints the time twenty times a second, until it is stopped."""

import time

while True:
    print(f"{time.monotonic():.6f}", flush=True)
    time.sleep(0.05)
