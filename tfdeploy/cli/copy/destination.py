"""Where a copy is written. Names from a task are used below the destination only, and no link there is followed.

A file is written beside its name and renamed when it is complete.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from ...agent.record.terminal_text import shown_text
from ...errors import SpecError

STDOUT = "-"
"""As DEST: standard output."""

_PART_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


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


def make_folder(path: Path, mode: int) -> None:
    """Create a folder where it is missing, with at most this mode for others. Its own folder is a real path.

    Raises:
        OSError: something of that name is not a folder, or the way to it leads over a link.
    """
    _refuse_links(path)
    with suppress(FileExistsError):
        path.mkdir(mode & 0o777 | 0o700)
    if path.is_symlink() or not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))


def write_file(path: Path, mode: int, parts: Iterable[bytes]) -> None:
    """Write a file, which has its name once it is complete. A file that it replaces passes its mode on.

    Raises:
        OSError: it cannot be written, a folder has that name, or the way to it leads over a link.
    """
    _refuse_links(path)
    part = path.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with os.fdopen(os.open(part, _PART_FLAGS, mode & 0o777 | 0o600), "wb") as file:
            with suppress(FileNotFoundError):
                replaced = path.lstat().st_mode
                if stat.S_ISREG(replaced):
                    os.fchmod(file.fileno(), replaced & 0o777)
            file.writelines(parts)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _refuse_links(path: Path) -> None:
    if os.path.realpath(path.parent) != str(path.parent):
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def write_reason(error: OSError) -> str:
    """Why something could not be written, in words."""
    links = (errno.ELOOP, errno.ENOTDIR)
    return "something of that name is not a folder" if error.errno in links else error.strerror or str(error)
