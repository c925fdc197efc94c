"""Runs a Python program as it is; each line that it prints is preceded by the time.

`python stamped.py PROGRAM [ARGUMENT…]`; the last line is `over`. The time is that of the monotonic clock: all programs of a
machine have the same one, also in containers, and it is never set. With BENCH_LINES, a folder, the lines are also appended to a file
there, which has the name of the host.
"""

import atexit
import os
import runpy
import socket
import sys
import time
from pathlib import Path
from typing import TextIO, cast


class Stamped:
    """A stream that writes the time before each line, to several streams."""

    def __init__(self, *streams: TextIO) -> None:
        self._streams = streams
        self._begins = True

    def write(self, text: str) -> int:
        """As of a file."""
        for line in text.splitlines(keepends=True):
            stamped = f"{time.monotonic():.6f} {line}" if self._begins else line
            for stream in self._streams:
                stream.write(stamped)
            self._begins = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        """As of a file."""
        for stream in self._streams:
            stream.flush()


def lines_in(folder: str) -> TextIO:
    """The file of this host there."""
    return Path(folder, socket.gethostname()).open("a", buffering=1)


def main() -> None:
    """Run the program that the arguments name."""
    folder = os.environ.get("BENCH_LINES")
    streams = [sys.stdout, lines_in(folder)] if folder else [sys.stdout]
    sys.stdout = cast(TextIO, Stamped(*streams))
    atexit.register(print, "over", flush=True)
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
