"""The form of a task's output: a text with one line for each line that the program prints, as in the logs of Kubernetes' CRI. Pure.

A line is `TIME stdout|stderr F:ATTEMPT text`, or `P:ATTEMPT` for a part of a line. The bytes of a stream are its texts, joined, with a
newline after each `F`. A text has any bytes but newlines. So a line begins after the next newline wherever one starts to read.
"""

import base64
import re
from datetime import datetime, timezone
from functools import lru_cache
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Set

from .terminal_text import last_state, plain

STDOUT, STDERR = 1, 2
PIPES = {STDOUT: "stdout", STDERR: "stderr"}

MAX_PART = 16 * 1024
"""A line of more bytes is divided into parts."""

PART_SECONDS = 0.2
"""What has waited so long for its newline becomes a part: `logs --follow` shows progress bars."""

MAX_FORM = 64
"""The most bytes of a line besides its text."""

_HEADER = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})Z std(out|err) ([FP]):(\d{1,7}) ")
_ATTEMPTS = re.compile(rb"^\S{27} std(?:out|err) [FP]:(\d{1,7}) ", re.MULTILINE)

_SHOWN = 4000

MAX_LINE = 64 * 1024
"""Of a longer line only so many bytes are held, and of a progress bar what follows the last carriage return."""


class Line(NamedTuple):
    """One line that a task printed, without its newline."""

    at: float
    pipe: int
    attempt: int
    content: bytes
    omitted: int
    """How many further bytes it has, which are only in the record."""

    @property
    def text(self) -> str:
        """The text as a terminal shows it, with its escape sequences. Long lines are cut."""
        shown = self.content
        if any(control in shown for control in (b"\r", b"\b", b"\x1b")):
            shown = last_state(shown.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        cut = f"… ({len(shown) + self.omitted} bytes)" if len(shown) + self.omitted > _SHOWN else ""
        return shown[:_SHOWN].decode("utf-8", "replace") + cut

    @property
    def redrawn(self) -> bool:
        """Whether a carriage return hides its beginning, as in progress bars."""
        return b"\r" in self.content.rstrip(b"\r")


class Part(NamedTuple):
    """One line of the record."""

    at: float
    """When its first byte was read from the pipe, in seconds since 1970."""
    pipe: int
    attempt: int
    text: bytes
    is_end: bool
    """Whether a newline follows the text."""


class Encoder:
    """Makes lines of the record from what one attempt prints to one stream."""

    def __init__(self, pipe: int, attempt: int) -> None:
        self._pipe, self._attempt = pipe, attempt
        self._rest = bytearray()
        self._at = 0.0

    def add(self, data: bytes, at: float) -> bytes:
        """The lines that are complete with these bytes, which were read at this time."""
        lines: List[bytes] = []
        *ended, rest = data.split(b"\n")
        for text in ended:
            self._extend(lines, text, at)
            lines.append(self._take(MAX_PART, True))
        self._extend(lines, rest, at)
        return b"".join(lines)

    def _extend(self, lines: List[bytes], text: bytes, at: float) -> None:
        self._at = self._at if self._rest else at
        self._rest += text
        while len(self._rest) > MAX_PART:
            lines.append(self._take(MAX_PART, False))
            self._at = at

    def _take(self, size: int, is_end: bool) -> bytes:
        text = bytes(self._rest[:size])
        del self._rest[:size]
        return encode(Part(self._at, self._pipe, self._attempt, text, is_end))

    @property
    def is_waiting(self) -> bool:
        """Whether there are bytes without a newline."""
        return bool(self._rest)

    def rest(self, now: float = float("inf")) -> bytes:
        """A part with what has waited for its newline for `PART_SECONDS`; empty without one."""
        return self._take(MAX_PART, False) if self._rest and now >= self._at + PART_SECONDS else b""


def encode(part: Part) -> bytes:
    """A line of the record."""
    return b"%bZ std%b %b:%d %b\n" % (
        _time_text(part.at),
        b"out" if part.pipe == STDOUT else b"err",
        b"F" if part.is_end else b"P",
        part.attempt,
        part.text,
    )


def parse(line: bytes) -> Optional[Part]:
    """A line of the record without its newline; None where it is damaged."""
    header = _HEADER.match(line)
    at = _seconds(header[1]) if header else None
    if header is None or at is None:
        return None
    pipe = STDOUT if header[2] == b"out" else STDERR
    return Part(at, pipe, int(header[4]), line[header.end() :], header[3] == b"F")


@lru_cache(1024)
def _time_text(at: float) -> bytes:
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="microseconds")[:-6].encode()


@lru_cache(1024)
def _seconds(text: bytes) -> Optional[float]:
    try:
        return datetime.fromisoformat(f"{text.decode()}+00:00").timestamp()
    except ValueError:
        return None


def printed(output: bytes, pipe: int) -> bytes:
    """The bytes of one stream in whole lines of the record."""
    parts = filter(None, map(parse, output.split(b"\n")[:-1]))
    return b"".join(part.text + b"\n" * part.is_end for part in parts if part.pipe == pipe)


def printed_bytes(output: bytes) -> int:
    """How many bytes programs have printed of these whole lines."""
    return sum(len(printed(output, pipe)) for pipe in PIPES)


def attempts_in(output: bytes) -> Set[int]:
    """The attempts that have printed these lines."""
    return set(map(int, _ATTEMPTS.findall(output)))


class Joiner:
    """Joins parts to lines, those of each stream."""

    def __init__(self, state: Optional[Dict[str, Any]] = None) -> None:
        self._rests = {
            int(pipe): Line(at, int(pipe), attempt, base64.b64decode(text), omitted)
            for pipe, (at, attempt, text, omitted) in (state or {}).items()
        }

    def state(self, shown_only: bool = False) -> Dict[str, Any]:
        """What waits for its end, as JSON; with `shown_only`, without what a terminal shows no longer."""
        contents = {pipe: _shown(rest.content) if shown_only else rest.content for pipe, rest in self._rests.items()}
        return {
            str(pipe): [rest.at, rest.attempt, base64.b64encode(contents[pipe]).decode(), rest.omitted]
            for pipe, rest in self._rests.items()
        }

    def add(self, part: Part) -> Iterator[Line]:
        """The lines that end with this part. A line of another attempt has ended, too. The time is that of the last part."""
        rest = self._rests.pop(part.pipe, None)
        if rest and rest.attempt != part.attempt:
            yield rest
            rest = None
        line = _joined(rest, part)
        if part.is_end:
            yield line
        elif line.content:
            self._rests[part.pipe] = line

    def unfinished(self) -> List[Line]:
        """What no newline has ended yet."""
        return sorted(self._rests.values(), key=lambda line: line.at)


def _joined(rest: Optional[Line], part: Part) -> Line:
    """What is held of a line. Beyond the limit, what a carriage return has hidden is dropped first, then the end."""
    content, omitted = (rest.content + part.text, rest.omitted) if rest else (part.text, 0)
    if len(content) > MAX_LINE:
        shown = max(0, content.rstrip(b"\r").rfind(b"\r"))
        omitted = (0 if shown else omitted) + max(0, len(content) - shown - MAX_LINE // 2)
        content = content[shown : shown + MAX_LINE // 2]
    return Line(part.at, part.pipe, part.attempt, content, omitted)


def _shown(content: bytes) -> bytes:
    """The end of a line that has not ended. Whatever follows, a terminal shows the same as after the whole: it has text between two
    carriage returns, which hides all that is before it."""
    end = content.rfind(b"\r")
    begin = content.rfind(b"\r", 0, max(0, end))
    while begin >= 0 and not plain(content[begin:end].decode("utf-8", "replace")):
        begin, end = content.rfind(b"\r", 0, begin), begin
    return content[max(0, begin) :]
