"""Where a copy is written. Names from a task are used below the destination only, and no link there is followed.

A file is written beside its name and renamed when it is complete. A copy that was interrupted leaves that part, and continues it.
"""

import errno
import fcntl
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...agent.record.terminal_text import shown_text
from ...errors import BackendError, SpecError, file_error

STDOUT = "-"
"""As DEST: standard output."""

_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_PART_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_MAX_NAME_BYTES = 200
"""Of a file's name in that of its part: a name has at most 255 bytes."""

_CHUNK = 1 << 20


def find_destination(text: str, source_name: str, is_folder: bool) -> Path:
    """The path that a text names, as for `cp`: below a folder that exists, else the path itself. Its folder exists.

    Raises:
        SpecError: it cannot be written.
    """
    path = Path(text)
    try:
        return _find(path, text, source_name, is_folder)
    except (OSError, RuntimeError) as error:  # the latter for links in a circle, before Python 3.13
        reason = error.strerror if isinstance(error, OSError) else os.strerror(errno.ELOOP)
        raise SpecError("DEST", f"{shown_text(text)} cannot be written: {reason}", "Use another name.") from None


def _find(path: Path, text: str, source_name: str, is_folder: bool) -> Path:
    if path.is_dir():
        return path.resolve() / source_name
    if path.is_symlink():
        path = path.resolve()
        if path.is_symlink():
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    if path.exists() and (is_folder or not path.is_file()):
        kind = "a file, and the source is a folder" if path.is_file() else "neither a file nor a folder"
        raise SpecError("DEST", f"{text} is {kind}", "Use another name.")
    if not path.parent.is_dir() or (text.endswith("/") and not is_folder):
        folder = path if text.endswith("/") and not is_folder else path.parent
        raise SpecError("DEST", f"the folder {folder} does not exist", f"Create it: mkdir -p {folder}.")
    return path.parent.resolve() / path.name


def refuse_in_source(destination: Path, source: Path) -> None:
    """Refuse to write into the source, given by its real path on this computer: a copy would replace a file that a program writes.

    Raises:
        SpecError: the destination is the source, or is in it.
    """
    if source in (destination, *destination.parents):
        where = "is" if source == destination else "is in"
        raise SpecError("DEST", f"{destination} {where} the source", "Use another folder.")


class TargetFolder:
    """The folder that a copy is written below."""

    def __init__(self, folder: Path) -> None:
        """Open it.

        Raises:
            BackendError: it cannot be opened.
        """
        try:
            self._root = os.open(folder, _FOLDER_FLAGS)
        except OSError as error:
            raise BackendError(file_error(error)) from None

    def close(self) -> None:
        """Release the folder."""
        os.close(self._root)

    @contextmanager
    def subfolder(self, name: str, mode: int = 0o777) -> Iterator[int]:
        """The descriptor of a folder below it, which is created where it is missing, with at most this mode for others.

        Raises:
            OSError: something of that name is not a folder.
        """
        descriptor = os.dup(self._root)
        try:
            for part in filter(None, name.split("/")):
                with suppress(FileExistsError):
                    os.mkdir(part, mode & 0o777 | 0o700, dir_fd=descriptor)
                child = os.open(part, _FOLDER_FLAGS | os.O_NOFOLLOW, dir_fd=descriptor)
                os.close(descriptor)
                descriptor = child
            yield descriptor
        finally:
            os.close(descriptor)


class Part:
    """The part of a file that has arrived."""

    def __init__(self, folder: int, name: str, source: str, mode: int) -> None:
        """Open the part of this source, or begin one; `folder` is a descriptor.

        Raises:
            OSError: it cannot be written.
            BackendError: another process writes it, or another user has created it.
        """
        self._folder, self._name = folder, name
        self._part = part_name(name, source)
        self.file = self._open(mode & 0o777 | 0o600)
        if (existing := self._existing_mode()) is not None:
            os.fchmod(self.file.fileno(), existing | 0o600)

    def _open(self, mode: int) -> Any:
        while True:
            file = os.fdopen(os.open(self._part, _PART_FLAGS, mode, dir_fd=self._folder), "r+b", buffering=0)
            try:
                self._lock(file)
                if self._is_current(file):
                    return file
            except BaseException:
                file.close()
                raise
            file.close()

    def _lock(self, file: Any) -> None:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_nlink > 1:
            raise BackendError(f"{self._part} is not the part of a file that this user has copied. Remove it.")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BackendError(f"another `tfdeploy cp` copies {self._name} to the same folder.") from None

    def _is_current(self, file: Any) -> bool:
        """Whether the file still has that name: the process that had the lock may have completed it."""
        try:
            status = os.stat(self._part, dir_fd=self._folder, follow_symlinks=False)
        except FileNotFoundError:
            return False
        return (status.st_dev, status.st_ino) == (os.fstat(file.fileno()).st_dev, os.fstat(file.fileno()).st_ino)

    def _existing_mode(self) -> int | None:
        """The permissions of the file that it replaces."""
        with suppress(FileNotFoundError):
            status = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                return status.st_mode & 0o777
        return None

    def complete(self) -> None:
        """Give it the name of the file. A file that it replaces passes its mode on.

        Raises:
            OSError: a folder has that name.
        """
        if (existing := self._existing_mode()) is not None:
            os.fchmod(self.file.fileno(), existing)
        try:
            os.replace(self._part, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Remove it."""
        with suppress(FileNotFoundError):
            os.unlink(self._part, dir_fd=self._folder)

    def close(self) -> None:
        """Leave it as it is."""
        self.file.close()


def part_name(name: str, source: str) -> str:
    """The name of a file's part: that of another source is another one."""
    begin = os.fsdecode(os.fsencode(name)[:_MAX_NAME_BYTES])
    return f".{begin}.{hashlib.sha256(source.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.part"


@dataclass(frozen=True)
class Held:
    """What this computer has of a file: its first bytes."""

    size: int
    content: Any
    """Their hash, which may be continued."""

    @property
    def sha256(self) -> str:
        """Their hash as text."""
        return str(self.content.hexdigest())


def held_content(file: Any) -> Held:
    """What a file has."""
    file.seek(0)
    size, content = 0, hashlib.sha256()
    while data := file.read(_CHUNK):
        size += len(data)
        content.update(data)
    return Held(size, content)


def existing_content(folder: int, name: str, size: int) -> Held | None:
    """What an existing file of this size has; None where there is none."""
    try:
        descriptor = os.open(name, _READ_FLAGS, dir_fd=folder)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size != size:
        os.close(descriptor)
        return None
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return held_content(file)


def write_reason(error: OSError) -> str:
    """Why something could not be written, in words."""
    links = (errno.ELOOP, errno.ENOTDIR)
    return "something of that name is not a folder" if error.errno in links else error.strerror or str(error)
