"""Lists and sends files where a task runs, for `tfdeploy cp`: requests arrive on one stream, responses leave on another.

The response to `LIST` is an entry for the path, one for each thing in it, and one of the kind `END`. The response to `READ` is a
`ContentBegin`; parts of the content, each after its length in 4 bytes; a length of 0; and a `ContentEnd`. That to `COMPARE` is the same
without parts.
"""

import hashlib
import os
import select
import stat
import struct
import time
from contextlib import suppress
from io import UnsupportedOperation
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, Iterable, Iterator, Optional, Tuple

from ..launch.exec import program_context
from .file_listing import children, descendants, is_inside, real_path, root_entry
from .file_messages import (
    ABSOLUTE,
    CHANGED,
    END,
    FAILED,
    FOLDER,
    GROWN,
    LIST,
    MAX_LINE,
    MISSING,
    NO_PROGRAM,
    READ,
    REFUSED,
    SAME,
    TRAIN_DIR,
    URL,
    ContentBegin,
    ContentEnd,
    FileEntry,
    FileRequest,
    from_line,
    to_line,
)

LENGTH = struct.Struct(">I")
CHUNK_BYTES = 1 << 20

_SUGGESTIONS = 20

_FRESH_SECONDS = 2.0
"""A file that changed so recently may change again without another time of change, which some file systems round to seconds."""

_NO_TRAIN_DIR = (
    "the environment of the program has no TFDEPLOY_TRAIN_DIR: a program that changes its title may overwrite it"
)
_GENERATED = "it has no size, as in /proc; `tfdeploy exec` with `cat` prints it"

_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # does not wait for the writer of a pipe


class _Unavailable(Exception):
    """There is no folder that a path could begin in."""

    def __init__(self, entry: FileEntry) -> None:
        super().__init__(entry.kind)
        self.entry = entry


class _ReadFailed(Exception):
    """A file cannot be read further."""


class _ClientLeft(Exception):
    """No client waits for the response. An engine discards what a command writes then, so that writing does not fail."""


class _WatchedFile:
    """A file that is read while the client is there. It sends no request before a response has ended."""

    def __init__(self, file: Any, requests: BinaryIO) -> None:
        self._file = file
        self._ended = select.poll()
        with suppress(UnsupportedOperation):  # not a stream of the system
            self._ended.register(requests.fileno(), select.POLLIN)
        self.fileno, self.seek = file.fileno, file.seek

    def readinto(self, buffer: memoryview) -> Optional[int]:
        """As that of the file."""
        if self._ended.poll(0):
            raise _ClientLeft
        count: Optional[int] = self._file.readinto(buffer)
        return count


def serve_files(folder: Path, requests: BinaryIO, responses: BinaryIO) -> int:
    """Respond to requests until there are no more; the exit code. `folder` is the launcher's."""
    root: Optional[Path] = None
    with suppress(BrokenPipeError, ConnectionResetError, _ClientLeft):
        for request in _requests(requests):
            if request.verb == LIST:
                root = _list(folder, request, responses)
            else:
                _read(root, request, requests, responses)
            responses.flush()
    return 0


def _requests(stream: BinaryIO) -> Iterator[FileRequest]:
    while True:
        line = stream.readline(MAX_LINE)
        if not line.endswith(b"\n"):
            return
        yield from_line(FileRequest, line)


def _list(folder: Path, request: FileRequest, responses: BinaryIO) -> Optional[Path]:
    """Send the entries of a path; its real path, in which the names of later requests begin."""
    try:
        root = real_path(_base(folder, request.base) / request.path)
    except _Unavailable as error:
        responses.write(to_line(error.entry))
        return None
    entry = root_entry(root)
    responses.write(to_line(entry))
    entries: Iterable[FileEntry] = ()
    if entry.kind == FOLDER:
        entries = descendants(root)
    elif entry.kind == MISSING:
        entries = islice(children(Path(entry.name)), _SUGGESTIONS)
    responses.writelines(to_line(listed) for listed in chain(entries, [FileEntry(END)]))
    return root


def _base(folder: Path, base: str) -> Path:
    if base == ABSOLUTE:
        return Path("/")
    context = program_context(folder, {})
    if context is None:
        raise _Unavailable(FileEntry(NO_PROGRAM))
    train_dir = context.environment.get("TFDEPLOY_TRAIN_DIR", "")
    if base == TRAIN_DIR and "://" in train_dir:
        raise _Unavailable(FileEntry(URL, train_dir))
    if base == TRAIN_DIR and not train_dir:
        raise _Unavailable(FileEntry(REFUSED, reason=_NO_TRAIN_DIR))
    return Path(context.folder, train_dir if base == TRAIN_DIR else "")


def _read(root: Optional[Path], request: FileRequest, requests: BinaryIO, responses: BinaryIO) -> None:
    """Send the content of an entry, without the part that the client has."""
    try:
        if root is None or not is_inside(real_path(root / request.path), root):
            raise PermissionError(0, "it is outside of the folder")
        file = _open(root / request.path)
    except OSError as error:
        responses.write(
            to_line(ContentBegin()) + LENGTH.pack(0) + to_line(ContentEnd(FAILED, reason=error.strerror or ""))
        )
        return
    with file:
        _send(_WatchedFile(file, requests), request, responses)


def _open(path: Path) -> Any:
    descriptor = os.open(str(path), _FLAGS)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(0, "it is not a file any more")
    return os.fdopen(descriptor, "rb", buffering=0)


def _send(file: Any, request: FileRequest, responses: BinaryIO) -> None:
    before = os.fstat(file.fileno())
    is_fresh = abs(time.time() - before.st_mtime) < _FRESH_SECONDS
    offset, content = _common_part(file, request, before.st_size)
    responses.write(to_line(ContentBegin(offset, before.st_size)))
    try:
        for chunk in _chunks(file, offset, before.st_size if request.verb == READ else offset):
            content.update(chunk)
            responses.write(LENGTH.pack(len(chunk)))
            responses.write(chunk)
        sha256 = content.hexdigest()
        end = ContentEnd(SAME if not is_fresh and _is_same(file, before) else _compared(file, before, sha256), sha256)
        if before.st_size == 0 and _is_generated(file):
            end = ContentEnd(FAILED, reason=_GENERATED)
    except _ReadFailed as error:
        end = ContentEnd(FAILED, reason=str(error))
    responses.write(LENGTH.pack(0) + to_line(end))


def _common_part(file: Any, request: FileRequest, size: int) -> Tuple[int, Any]:
    """How many bytes the client has, and their hash; 0 where they are not the beginning of the file."""
    if 0 < request.offset <= size:
        with suppress(_ReadFailed):
            content = _hash(file, request.offset)
            if content.hexdigest() == request.sha256:
                return request.offset, content
    return 0, hashlib.sha256()


def _hash(file: Any, size: int) -> Any:
    content = hashlib.sha256()
    for chunk in _chunks(file, 0, size):
        content.update(chunk)
    return content


def _chunks(file: Any, offset: int, size: int) -> Iterator[memoryview]:
    """The content from an offset to a size; less where the file has become shorter. Each part is valid until the next one."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    try:
        file.seek(offset)
        while offset < size:
            count = file.readinto(buffer[: min(CHUNK_BYTES, size - offset)])
            if not count:
                return
            offset += count
            yield buffer[:count]
    except OSError as error:
        raise _ReadFailed(error.strerror or str(error)) from None


def _is_same(file: Any, before: os.stat_result) -> bool:
    after = os.fstat(file.fileno())
    return (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)


def _is_generated(file: Any) -> bool:
    """Whether a file has content and no size, as those in /proc have."""
    return any(True for _ in _chunks(file, 0, 1)) and os.fstat(file.fileno()).st_size == 0


def _compared(file: Any, before: os.stat_result, sha256: str) -> str:
    """What happened to a file of which so many bytes as it had were read, with this hash."""
    if _hash(file, before.st_size).hexdigest() != sha256:
        return CHANGED
    return GROWN if os.fstat(file.fileno()).st_size > before.st_size else SAME
