"""Copies what arrives as an archive. It may be wrong or hostile: a task's program controls its container."""

import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from ...agent.launch.copy_archive import BEGIN, CONTENT, END, Begin, End
from ...backends.connection import Connection
from ...errors import DISK_FULL, BackendError, Unreachable, file_error
from .destination import make_folder, write_file, write_reason

_MAX_JSON = 1 << 27
"""How many bytes `begin` and `end` may have."""

_CHUNK = 1 << 20


@dataclass
class CopyResult:
    """What was copied, and what was not."""

    files: int = 0
    bytes: int = 0
    """The sizes of these files."""
    grown: list[str] = field(default_factory=list)
    """Files that were copied up to the size that they had, while their program appended to them."""
    changed: list[str] = field(default_factory=list)
    """Other files that were written to while they were copied."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Name to the reason."""
    failed: dict[str, str] = field(default_factory=dict)
    """Name to the reason."""


class ArrivingFiles:
    """The archive that a connection brings."""

    def __init__(self, connection: Connection) -> None:
        """Wait for what the path is.

        Raises:
            Unreachable: the connection ended.
            BackendError: something else arrives.
        """
        self._connection, self._has_ended = connection, False
        with self.errors():
            self._archive = tarfile.open(mode="r|", fileobj=cast(Any, self))  # noqa: SIM115
            first = self._archive.next()
            if first is None or first.name != BEGIN:
                raise ValueError("not the beginning")
            self.begin = Begin.from_dict(self._json(first))

    def read(self, _size: int) -> bytes:
        """The next bytes, for `tarfile`."""
        try:
            data = self._connection.receive()
        except OSError:
            data = b""
        self._has_ended = not data
        return data

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise what is wrong with the archive as an error in words."""
        try:
            yield
        except (tarfile.TarError, ValueError, TypeError, OverflowError, RecursionError):
            if self._has_ended:
                raise Unreachable(self._connection.why() or "the connection to the task ended") from None
            raise BackendError(
                "the task responds with something else than files: does its program change those of its launcher?"
            ) from None

    def members(self) -> Iterator[tuple[tarfile.TarInfo, Any]]:
        """The files, with their content, and the folders, without; each folder before what is in it. Then there is an `end`."""
        while (member := self._archive.next()) is not None:
            if member.name == END:
                self.end = End.from_dict(self._json(member))
                return
            content = self._archive.extractfile(member) if member.isreg() else None
            if content is None and not member.isdir():
                raise ValueError("neither a file nor a folder")
            yield member, content
        self._has_ended = True
        raise ValueError("no end")

    def _json(self, member: tarfile.TarInfo) -> Any:
        content = self._archive.extractfile(member) if member.isreg() and member.size <= _MAX_JSON else None
        if content is None:
            raise ValueError("not a message")
        return json.loads(content.read())

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def _checked(name: str) -> str:
    """The name of a member below the copied path.

    Raises:
        BackendError: it leads out of it.
    """
    first, *parts = name.split("/")
    if first != str(CONTENT) or {"", ".", ".."} & {*parts} or "\0" in name:
        raise BackendError(f"the task sends {name!r}, which is not the name of a file in the folder.")
    return "/".join(parts)


def copy(arrival: ArrivingFiles, title: str, destination: Path, report: Callable[[int], None]) -> CopyResult:
    """Copy a file or a folder; messages name it by `title`.

    Raises:
        Unreachable: the connection ended.
        BackendError: this computer's disk is full.
    """
    files, size, failed = 0, 0, dict[str, str]()
    with arrival.errors():
        for member, content in arrival.members():
            name = _checked(member.name)
            try:
                if content is None:
                    make_folder(destination / name, member.mode)
                    continue
                write_file(destination / name, member.mode, _parts(content, size, report))
            except ConnectionError:
                raise
            except OSError as error:
                _refuse_full_disk(error, destination / name)
                failed[name or title] = write_reason(error)
            else:
                files, size = files + 1, size + member.size
    return CopyResult(files, size, **{**vars(arrival.end), "failed": failed | arrival.end.failed})


def copy_to_stdout(arrival: ArrivingFiles, title: str, report: Callable[[int], None]) -> CopyResult:
    """Write a file to standard output, once all of it has arrived as it is.

    Raises:
        Unreachable: the connection ended.
        BackendError: the disk of temporary files is full, or a folder arrives.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file").resolve()
        result = copy(arrival, title, path, report)
        if path.is_dir():
            raise BackendError(f"{title} is a folder now, and stdout takes a single file.")
        if not result.failed and not result.changed:
            with path.open("rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.flush()
    return result


def _parts(content: Any, position: int, report: Callable[[int], None]) -> Iterator[bytes]:
    while data := content.read(_CHUNK):
        yield data
        position += len(data)
        report(position)


def _refuse_full_disk(error: OSError, path: Path) -> None:
    if error.errno in DISK_FULL:
        error.filename = os.fspath(path)
        raise BackendError(file_error(error)) from None
