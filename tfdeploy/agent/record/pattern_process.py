"""Users' patterns, matched in a separate process: a pattern that takes too long holds nothing else.

The process has no state. It gets patterns and lines, and returns the last match of each pattern. A pattern that takes more than
`PATTERN_SECONDS` of processor time for one batch of lines is returned as slow, and does not see that batch.
"""

import json
import os
import re
import resource
import select
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Tuple

from .metric_values import is_torn

PATTERN_SECONDS = 1.0
"""The processor time of one pattern for one batch, which is what a reader's block has of lines: several times what a usual pattern
takes for a hundred times as many lines."""

_RESPONSE_SECONDS = 15.0
"""The process is ended when it does not respond for so long, as on a machine without any processor time left."""

_MAX_MEMORY = 1024 * 1024 * 1024
_CHUNK = 64 * 1024

_PASSED = ("LD_LIBRARY_PATH", "TFDEPLOY_CLUSTER")
"""The variables that the process gets: how it finds libraries, and the mark by which `destroy` finds the processes of a cluster. The
environment of the program that starts it may have secrets."""


class Matches(NamedTuple):
    """What a search returned."""

    last: Dict[str, Tuple[int, str]]
    """Name of a pattern to the number of the last line that it matches, and the text of its group 1, else of the whole match."""
    slow: List[str]
    """The names of the patterns that took too long."""


class Matcher:
    """The process, started at the first search and again after it was ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._owner = 0

    def search(self, patterns: Dict[str, str], lines: Sequence[str]) -> Optional[Matches]:
        """Search these lines; None where the process does not respond, so that the search may be repeated later."""
        request = json.dumps({"patterns": patterns, "lines": list(lines)}).encode() + b"\n"
        with self._lock:
            try:
                response = self._exchange(request)
                data = json.loads(response)
            except (OSError, ValueError):
                self._end()
                return None
        return Matches({name: (int(line), str(text)) for name, (line, text) in data["last"].items()}, data["slow"])

    def _exchange(self, request: bytes) -> bytes:
        process = self._started()
        if process.stdin is None or process.stdout is None:
            raise OSError("no pipes")
        _write(process.stdin.fileno(), request)
        response = bytearray()
        while not response.endswith(b"\n"):
            _wait(process.stdout.fileno(), select.POLLIN)
            part = os.read(process.stdout.fileno(), _CHUNK)
            if not part:
                raise ConnectionError("the process has ended")
            response += part
        return bytes(response)

    def _started(self) -> "subprocess.Popen[bytes]":
        if self._owner != os.getpid():
            self._process = None  # that of the process which has forked this one
        if self._process is not None and self._process.poll() is not None:
            self._end()
        if self._process is None:
            module = Path(__file__)
            package = ".".join((__package__ or "").split(".")[-2:])
            code = f"import sys; sys.path.append(sys.argv[1]); from {package}.{module.stem} import serve; serve()"
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", code, str(module.parents[2])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={name: os.environ[name] for name in _PASSED if name in os.environ},
                start_new_session=True,
            )
            self._owner = os.getpid()
        return self._process

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_RESPONSE_SECONDS)
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    if pipe is not None:
                        pipe.close()


def _write(descriptor: int, content: bytes) -> None:
    """Write all of it into a pipe.

    Raises:
        OSError: the reader has ended, or has read nothing for `_RESPONSE_SECONDS`.
    """
    os.set_blocking(descriptor, False)
    rest = memoryview(content)
    while rest:
        _wait(descriptor, select.POLLOUT)
        with suppress(BlockingIOError):
            rest = rest[os.write(descriptor, rest) :]


def _wait(descriptor: int, event: int) -> None:
    """Wait until a pipe can be read or written. `select` would refuse descriptors from 1024 on, which a controller of many tasks has.

    Raises:
        TimeoutError: it cannot be for `_RESPONSE_SECONDS`.
    """
    poll = select.poll()
    poll.register(descriptor, event)
    if not poll.poll(_RESPONSE_SECONDS * 1000.0):
        raise TimeoutError


SHARED = Matcher()
"""That of this process."""


class TooSlow(Exception):
    """The processor time of a pattern is used up."""


def _interrupt(*_: Any) -> None:
    raise TooSlow


@contextmanager
def limited() -> Iterator[None]:
    """`TooSlow` after so much processor time of this process, in its main thread. The signal handler ends a search: the module `re`
    runs handlers while it matches."""
    signal.signal(signal.SIGVTALRM, _interrupt)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATTERN_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def serve() -> None:
    """Respond to searches until standard input ends: with the process that has started this one."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY, _MAX_MEMORY))
    for line in sys.stdin.buffer:
        request = json.loads(line)
        matches = search(request["patterns"], request["lines"])
        sys.stdout.write(json.dumps({"last": matches.last, "slow": matches.slow}) + "\n")
        sys.stdout.flush()


def search(patterns: Dict[str, str], lines: Sequence[str]) -> Matches:
    """Search in this process."""
    last: Dict[str, Tuple[int, str]] = {}
    slow = []
    for name, pattern in patterns.items():
        try:
            with limited():
                match = _last_match(pattern, lines)
        except (TooSlow, MemoryError, RecursionError):
            slow.append(name)
            continue
        if match is not None:
            last[name] = match
    return Matches(last, slow)


def _last_match(pattern: str, lines: Sequence[str]) -> Optional[Tuple[int, str]]:
    """The last match that is not a part of a torn number."""
    expression = re.compile(pattern)
    group = 1 if expression.groups else 0
    for number in range(len(lines) - 1, -1, -1):
        for match in reversed(list(expression.finditer(lines[number]))):
            if not is_torn(lines[number], *match.span(group)):
                return number, match.group(group) or ""
    return None
