"""Prints numbered lines at an even pace: `python flood.py LINES_A_SECOND SECONDS`."""

import sys
import time
from collections.abc import Iterator

BURSTS = 100
"""How often a second lines are printed."""


def bursts(rate: int, seconds: int) -> Iterator[str]:
    """The lines of one burst after the other."""
    size = rate // BURSTS
    for burst in range(BURSTS * seconds):
        yield "".join(f"line {burst * size + number:09} {'=' * 64}\n" for number in range(size))


def main() -> None:
    """Print them all."""
    begun = time.monotonic()
    for number, text in enumerate(bursts(int(sys.argv[1]), int(sys.argv[2]))):
        time.sleep(max(0.0, begun + number / BURSTS - time.monotonic()))
        sys.stdout.write(text)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
