"""The client of the agent's file server. What it receives may be wrong or hostile: a task's program controls its container."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..agent.user_files.file_messages import (
    CHANGED,
    COMPARE,
    END,
    FAILED,
    FILE,
    FOLDER,
    GROWN,
    LIST,
    MAX_ENTRIES,
    MAX_LINE,
    MISSING,
    READ,
    SAME,
    SKIPPED,
    UNREADABLE,
    ContentBegin,
    ContentEnd,
    FileEntry,
    FileRequest,
    Message,
    from_line,
    to_line,
)
from ..agent.user_files.file_server import CHUNK_BYTES, LENGTH, serve_files
from ..errors import BackendError, Unreachable
from .connection import Connection, SocketConnection

MAX_LISTING = 1 << 27
"""How many bytes the names and reasons of all entries may have."""


@dataclass(frozen=True)
class Listing:
    """A path, with all that is in it."""

    root: FileEntry
    entries: tuple[FileEntry, ...]
    """Files, folders, and what is not copied; each folder is before its content. For a path that does not exist, what there is."""


class TaskFiles:
    """The files that one connection leads to."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._data, self._position = b"", 0
        """What was received last, and how much of it was used."""

    def list(self, base: str, path: str) -> Listing:
        """The entries of a path.

        Raises:
            BackendError: there are too many, or one has a name that leads out of the path.
            Unreachable: the connection ended.
        """
        self._send(FileRequest(LIST, base, path))
        root = self._message(FileEntry)
        entries: list[FileEntry] = []
        length = 0
        if root.kind in (FILE, FOLDER, MISSING):
            while (entry := self._message(FileEntry)).kind != END:
                length += len(entry.name) + len(entry.reason)
                if len(entries) == MAX_ENTRIES or length > MAX_LISTING:
                    raise BackendError(
                        f"{root.name} has more than {MAX_ENTRIES} files, or very long names. "
                        "Copy its subfolders one by one."
                    )
                entries.append(_checked(entry))
        return Listing(root, tuple(entries))

    def read(self, name: str, offset: int, sha256: str) -> ContentBegin:
        """Request the content of an entry, without the first `offset` bytes if `sha256` is their hash. Call `parts` and `end` next."""
        self._send(FileRequest(READ, path=name, offset=offset, sha256=sha256))
        begin = self._message(ContentBegin)
        if begin.offset not in (0, offset) or begin.size < 0:
            raise _violation()
        return begin

    def has(self, name: str, size: int, sha256: str) -> bool:
        """Whether this is the size and the hash of an entry's content."""
        self._send(FileRequest(COMPARE, path=name, offset=size, sha256=sha256))
        begin = self._message(ContentBegin)
        for _ in self.parts(ContentBegin()):
            pass
        return self.end().state == SAME and begin.offset == size == begin.size

    def parts(self, begin: ContentBegin) -> Iterator[memoryview]:
        """All parts of the content that begins so; each is valid until the next one."""
        limit = begin.size - begin.offset
        while length := LENGTH.unpack(self._exactly(LENGTH.size))[0]:
            limit -= length
            if length > CHUNK_BYTES or limit < 0:
                raise _violation()
            while length:
                data = self._at_most(length)
                length -= len(data)
                yield data

    def end(self) -> ContentEnd:
        """After the last part: whether the file has changed meanwhile, and its hash."""
        end = self._message(ContentEnd)
        if end.state not in (SAME, GROWN, CHANGED, FAILED):
            raise _violation()
        return end

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _send(self, request: FileRequest) -> None:
        with suppress(OSError):  # the response ends then
            self._connection.send(to_line(request))

    def _message(self, kind: type[Message]) -> Message:
        line = b""
        while not line.endswith(b"\n"):
            if len(line) > MAX_LINE:
                raise _violation()
            self._receive()
            end = self._data.find(b"\n", self._position) + 1 or len(self._data)
            line += self._data[self._position : end]
            self._position = end
        try:
            return from_line(kind, line)
        except ValueError:
            raise _violation() from None

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            data += self._at_most(count - len(data))
        return data

    def _at_most(self, count: int) -> memoryview:
        self._receive()
        data = memoryview(self._data)[self._position : self._position + count]
        self._position += len(data)
        return data

    def _receive(self) -> None:
        """Receive more if all was used."""
        if self._position < len(self._data):
            return
        try:
            self._data, self._position = self._connection.receive(), 0
        except OSError:
            self._data = b""
        if not self._data:
            raise Unreachable(self._connection.why() or "the connection to the task ended")


def _checked(entry: FileEntry) -> FileEntry:
    """The entry, if it is one, and a file that it names is below the folder.

    Raises:
        BackendError: it is not.
    """
    if entry.kind in (SKIPPED, UNREADABLE):
        return entry
    parts = entry.name.split("/")
    if (
        entry.kind not in (FILE, FOLDER)
        or entry.size < 0
        or {"", ".", ".."} & {*parts}
        or not _is_file_name(entry.name)
    ):
        raise BackendError(
            f"the task lists {entry.name!r}, which is not the name of a file in the folder: nothing is copied."
        )
    return entry


def _is_file_name(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except ValueError:  # a surrogate that is not the form of a byte
        return False


def _violation() -> BackendError:
    return BackendError(
        "the task responds with something else than files: does its program change those of its launcher?"
    )


class ThreadConnection(SocketConnection):
    """A connection to a file server in a thread of this process, for files of this computer."""

    def __init__(self, folder: Path) -> None:
        """Start it; `folder` is the launcher's, where it is about a task."""
        near, server = socket.socketpair()
        for end in (near, server):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, CHUNK_BYTES)
        threading.Thread(target=_serve, args=(folder, server), daemon=True).start()
        super().__init__(near, chunk_bytes=CHUNK_BYTES)


def _serve(folder: Path, server: socket.socket) -> None:
    # Closing the responses sends what is left of them, also where the client has closed the connection.
    with suppress(OSError), server, server.makefile("rb") as requests, server.makefile("wb") as responses:
        serve_files(folder, requests, responses)
