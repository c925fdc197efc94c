"""Where lines go: to a terminal in colours, to a pipe or a file byte for byte, or as JSON."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..errors import BackendError
from .following import Line
from .terminal import coloured, prefix, safe

Write = Callable[[Iterable[Line]], None]


@contextmanager
def writer(as_json: bool, follow: bool, save: Path | None, hostnames: Sequence[str]) -> Iterator[Write]:
    """How lines are written; `hostnames` are those of the tasks they may be of."""
    if save is not None:
        with _file(save) as file:
            yield _bytes(file, len(hostnames) != 1)
    elif as_json:
        yield _each if follow else _whole
    elif sys.stdout.isatty():
        yield _screen(hostnames)
    else:
        yield _bytes(sys.stdout.buffer, True)


def _file(path: Path) -> BinaryIO:
    try:
        return path.expanduser().open("wb")
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BackendError(f"cannot write {path}: {why}. Give another file: --save FILE.") from None


def _bytes(file: BinaryIO, prefixed: bool) -> Write:
    def write(lines: Iterable[Line]) -> None:
        file.writelines((prefix(line.hostname).encode() if prefixed else b"") + line.content + b"\n" for line in lines)
        file.flush()

    return write


def _screen(hostnames: Sequence[str]) -> Write:
    places = {hostname: place for place, hostname in enumerate(hostnames)}
    colours = "NO_COLOR" not in os.environ

    def write(lines: Iterable[Line]) -> None:
        for line in lines:
            begin = prefix(line.hostname)
            place = places.setdefault(line.hostname, len(places))
            print((coloured(begin, place) if colours else begin) + safe(line.text, colours))
        sys.stdout.flush()

    return write


def _each(lines: Iterable[Line]) -> None:
    for line in lines:
        print(json.dumps(_document(line)))
    sys.stdout.flush()


def _whole(lines: Iterable[Line]) -> None:
    between = "[\n"
    for line in lines:
        sys.stdout.write(between + json.dumps(_document(line)))
        between = ",\n"
    print("[]" if between == "[\n" else "\n]", flush=True)


def _document(line: Line) -> dict[str, object]:
    text = line.content.decode("utf-8", "replace")
    return {"at": line.at, "task": line.hostname, "stream": line.pipe, "attempt": line.attempt, "text": text}
