"""Atomic file writes, and hashes of files."""

import errno
import hashlib
import os
import threading
from pathlib import Path
from typing import Optional, Union

_PIECE = 1024 * 1024


def sha256_of(path: Path, size: float = float("inf")) -> str:
    """The SHA-256 of a file's content, or of its first `size` bytes, as hexadecimal digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while data := file.read(int(min(_PIECE, size))):
            digest.update(data)
            size -= len(data)
    return digest.hexdigest()


def write_whole(
    path: Path, data: Union[str, bytes], mode: Optional[int] = None, sync: bool = False, sync_name: bool = True
) -> None:
    """Replace a file in one step, so that a reader sees either the old content or the new, never a part.

    The folder is created where it is missing. `mode` is the file's mode from its creation on; None leaves it to the umask. With
    `sync` the content is on the disk before the file gets its name, and with `sync_name` the name is before the call returns: without
    that a crash of the machine leaves the old content or the new.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.draft")
    draft.unlink(missing_ok=True)
    content = data.encode() if isinstance(data, str) else data
    try:
        with os.fdopen(os.open(str(draft), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            if sync:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
        if sync and sync_name:
            _sync_folder(path.parent)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(draft)):
            error.filename = str(path)
        raise


def append(path: Path, data: bytes) -> None:
    """Append to a file; file and folder are created where they are missing. An error, as on a full disk, may leave the first bytes of
    the data."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(data)


def _sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk. Some file systems, as of networks, cannot do that."""
    descriptor = os.open(str(folder), os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)
