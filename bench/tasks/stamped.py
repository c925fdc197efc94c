"""Runs a Python program as it is; each line that it prints is preceded by the time.

`python stamped.py PROGRAM [ARGUMENT…]`; the last line is `over`. The time is that of the monotonic clock: all programs of a
machine have the same one, also in containers, and it is never set.
"""

import atexit
import runpy
import sys
import time
from typing import TextIO, cast


class Stamped:
    """A stream that writes the time before each line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._begins = True

    def write(self, text: str) -> int:
        """As of a file."""
        for line in text.splitlines(keepends=True):
            self._stream.write(f"{time.monotonic():.6f} {line}" if self._begins else line)
            self._begins = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """As of a file."""
        self._stream.flush()


def main() -> None:
    """Run the program that the arguments name."""
    stream = Stamped(sys.stdout)
    sys.stdout = cast(TextIO, stream)
    atexit.register(print, "over", flush=True)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
