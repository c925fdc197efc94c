"""The messages of the file server, each a line of JSON. Its client trusts nothing that a task's container sends."""

import json
from dataclasses import dataclass
from typing import Type, TypeVar

LIST, READ, COMPARE = "list", "read", "compare"
"""What a request asks for: the entries of a path; the content of one of them; or only whether the client has this content."""

WORK, TRAIN_DIR, ABSOLUTE = "work", "train_dir", "absolute"
"""Where a path begins: the working directory of the program, the run's `train_dir`, or `/`."""

FILE, FOLDER = "file", "folder"
SKIPPED, UNREADABLE = "skipped", "unreadable"
"""An entry that is not copied: because of what it is, such as a socket; because it cannot be read."""
END = "end"
MISSING, NO_PROGRAM, URL, REFUSED = "missing", "no-program", "url", "refused"
"""The first entry where there is nothing to copy. After `MISSING` follow entries of the nearest folder that exists, which it names."""

SAME, GROWN, CHANGED, FAILED = "same", "grown", "changed", "failed"
"""What happened to a file while it was sent. One that has only grown was sent up to the size that it had before."""

MAX_LINE = 1 << 16

MAX_ENTRIES = 100_000
"""How many entries a folder may have, with those of its subfolders."""


@dataclass(frozen=True)
class FileRequest:
    """Asks for entries, or for the content of one."""

    verb: str = ""
    base: str = ""
    path: str = ""
    """The path to list, or the name of an entry that was listed last."""
    offset: int = 0
    """How many bytes of the content the client has."""
    sha256: str = ""
    """The hash of these bytes. A file that begins with other bytes is sent from its beginning."""


@dataclass(frozen=True)
class FileEntry:
    """One of the entries of a path. The first one is about the path itself, and has its real path as name."""

    kind: str = ""
    name: str = ""
    """Relative to the path. Bytes that are not UTF-8 are surrogates."""
    size: int = 0
    mode: int = 0
    """Its permissions. A file or a folder that others may not read stays so."""
    reason: str = ""


@dataclass(frozen=True)
class ContentBegin:
    """Before the content of a file."""

    offset: int = 0
    size: int = 0


@dataclass(frozen=True)
class ContentEnd:
    """After the content of a file."""

    state: str = ""
    sha256: str = ""
    """The hash of the whole content, with the part that was not sent."""
    reason: str = ""


Message = TypeVar("Message", FileRequest, FileEntry, ContentBegin, ContentEnd)


def to_line(message: Message) -> bytes:
    """The message as a line."""
    return json.dumps(vars(message)).encode() + b"\n"


def from_line(kind: Type[Message], line: bytes) -> Message:
    """A message from its line. Fields of a newer version are ignored.

    Raises:
        ValueError: it is not such a message.
    """
    try:
        data = json.loads(line)
    except RecursionError:
        data = None
    if not isinstance(data, dict):
        raise ValueError("not a message")
    defaults = vars(kind())
    values = {name: data[name] for name in defaults if name in data}
    if any(type(value) is not type(defaults[name]) for name, value in values.items()):
        raise ValueError("a field has another type")
    return kind(**values)
