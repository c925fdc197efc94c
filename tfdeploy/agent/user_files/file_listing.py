"""What is to copy below a folder. Links are followed only where they lead to something below it."""

import os
import stat
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Iterator, List, Tuple

from .file_messages import FILE, FOLDER, MAX_ENTRIES, MISSING, REFUSED, SKIPPED, UNREADABLE, FileEntry

Parents = Tuple[Tuple[int, int], ...]
"""The device and the inode of each folder on the way to an entry."""


def real_path(path: Path) -> Path:
    """The path without links; `Path.resolve` raises an error where links lead in a circle."""
    return Path(os.path.realpath(str(path)))


def is_inside(path: Path, root: Path) -> bool:
    """Whether a real path is a folder or something below it."""
    return path == root or root in path.parents


def root_entry(path: Path) -> FileEntry:
    """The entry of a real path itself."""
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return FileEntry(MISSING, str(next(parent for parent in path.parents if parent.is_dir())))
    except OSError as error:
        return FileEntry(REFUSED, str(path), reason=error.strerror or "")
    entry = _entry(str(path), status)
    return FileEntry(REFUSED, str(path), reason=entry.reason) if entry.kind == SKIPPED else entry


def children(folder: Path) -> Iterator[FileEntry]:
    """What a folder has, as a suggestion; nothing where it cannot be read."""
    with suppress(OSError):
        for name in _names(folder):
            yield FileEntry(FOLDER if (folder / name).is_dir() else FILE, name)


def _names(folder: Path) -> List[str]:
    """The names in a folder; of one that has too many, so many that the client refuses it. They would not fit in a small container."""
    with os.scandir(str(folder)) as entries:
        return sorted(entry.name for entry in islice(entries, MAX_ENTRIES + 1))


def descendants(root: Path) -> Iterator[FileEntry]:
    """All that is below a folder, given by its real path; each folder before its content."""
    pending: List[Tuple[str, Parents]] = [("", ())]
    while pending:
        folder, parents = pending.pop()
        path = root / folder
        try:
            parents = (*parents, _identity(path.stat()))
            names = _names(path)
        except OSError as error:
            yield FileEntry(UNREADABLE, folder, reason=error.strerror or "")
            continue
        entries = [_child(root, f"{folder}/{name}" if folder else name, parents) for name in names]
        yield from entries
        pending += [(entry.name, parents) for entry in reversed(entries) if entry.kind == FOLDER]


def _child(root: Path, name: str, parents: Parents) -> FileEntry:
    path = root / name
    try:
        if path.is_symlink():
            target = real_path(path)
            if not is_inside(target, root):
                return FileEntry(SKIPPED, name, reason=f"a link to {target}, outside of the folder")
            if not target.exists():
                return FileEntry(SKIPPED, name, reason=f"a link to {target}, which does not exist")
        status = path.stat()
    except OSError as error:
        return FileEntry(UNREADABLE, name, reason=error.strerror or "")
    if stat.S_ISDIR(status.st_mode) and _identity(status) in parents:
        return FileEntry(SKIPPED, name, reason="a link to a folder that contains it")
    return _entry(name, status)


def _identity(status: os.stat_result) -> Tuple[int, int]:
    return status.st_dev, status.st_ino


def _entry(name: str, status: os.stat_result) -> FileEntry:
    if stat.S_ISDIR(status.st_mode):
        return FileEntry(FOLDER, name, mode=status.st_mode & 0o777)
    if stat.S_ISREG(status.st_mode):
        return FileEntry(FILE, name, status.st_size, status.st_mode & 0o777)
    kinds = ((stat.S_ISSOCK, "a socket"), (stat.S_ISFIFO, "a pipe"))
    return FileEntry(
        SKIPPED, name, reason=next((kind for is_kind, kind in kinds if is_kind(status.st_mode)), "a device")
    )
