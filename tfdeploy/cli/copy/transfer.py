"""Copies what is listed: each file is received, compared by its hash, and renamed; one that changes meanwhile is received again."""

import hashlib
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...agent.user_files.file_messages import CHANGED, FILE, FOLDER, GROWN, SAME, SKIPPED, ContentEnd, FileEntry
from ...backends.task_files import TaskFiles
from ...errors import DISK_FULL, BackendError, file_error
from .destination import Part, TargetFolder, existing_content, held_content, write_reason
from .source import OpenSource

_ATTEMPTS = 3
"""How often a file is received that changes meanwhile."""

COMPLETE = (SAME, GROWN)

_CHANGED = "it changes while it is copied"


@dataclass
class Meter:
    """How many bytes of a copy are done, for a progress bar."""

    report: Callable[[int], None]
    completed: int = 0
    """The sizes of the files before the current one."""

    def show(self, current: int) -> None:
        """So many bytes of the current file are there."""
        self.report(self.completed + current)

    def next_file(self, size: int) -> None:
        """The current file, of this size, is done."""
        self.completed += size
        self.show(0)


@dataclass
class CopyResult:
    """What was copied, and what was not."""

    files: int = 0
    bytes: int = 0
    """The sizes of these files."""
    received: int = 0
    """What was transferred: less where a part or the same file was there."""
    grown: list[str] = field(default_factory=list)
    """Files that were copied up to the size that they had, while their program appended to them."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Name to the reason."""
    failed: dict[str, str] = field(default_factory=dict)
    """Name to the reason."""

    def add(self, name: str, received: "_Received") -> None:
        """The result of one file."""
        self.received += received.count
        if received.end.state not in COMPLETE:
            self.failed[name] = received.end.reason or _CHANGED
            return
        self.files += 1
        self.bytes += received.size
        if received.end.state == GROWN:
            self.grown.append(name)


@dataclass(frozen=True)
class _Received:
    """One file that has arrived, or has not."""

    end: ContentEnd
    size: int = 0
    count: int = 0
    """How many bytes were transferred."""


def copy(source: OpenSource, destination: Path, report: Callable[[int], None]) -> CopyResult:
    """Copy a file or a folder.

    Raises:
        Unreachable: the connection ended. The same call continues.
        BackendError: this computer's disk is full or cannot be written.
    """
    result, meter = CopyResult(), Meter(report)
    root = source.listing.root
    with closing(TargetFolder(destination.parent)) as target:
        if root.kind == FILE:
            _copy_file(source, FileEntry(FILE, "", root.size, root.mode), target, destination.name, meter, result)
        else:
            _make_folder(target, destination.name, root.mode, destination.name, result)
            for entry in source.listing.entries:
                path = f"{destination.name}/{entry.name}"
                if entry.kind == FILE:
                    _copy_file(source, entry, target, path, meter, result)
                elif entry.kind == FOLDER:
                    _make_folder(target, path, entry.mode, entry.name, result)
                else:
                    (result.skipped if entry.kind == SKIPPED else result.failed)[entry.name] = entry.reason
    return result


def _make_folder(target: TargetFolder, path: str, mode: int, name: str, result: CopyResult) -> None:
    try:
        with target.subfolder(path, mode):
            return
    except OSError as error:
        _refuse_full_disk(error, path)
        result.failed[name] = write_reason(error)


def _copy_file(
    source: OpenSource, entry: FileEntry, target: TargetFolder, path: str, meter: Meter, result: CopyResult
) -> None:
    folder, _, name = path.rpartition("/")
    title = entry.name or source.name
    try:
        with (
            target.subfolder(folder) as descriptor,
            closing(Part(descriptor, name, f"{source.identity} {entry.name}", entry.mode)) as part,
        ):
            existing = existing_content(descriptor, name, entry.size) if not held_content(part.file).size else None
            if existing and source.files.has(entry.name, existing.size, existing.sha256):
                received = _Received(ContentEnd(SAME), entry.size)
                part.discard()
            else:
                received = _receive(source.files, entry.name, part.file, meter)
                (part.complete if received.end.state in COMPLETE else part.discard)()
    except ConnectionError:
        raise
    except OSError as error:
        _refuse_full_disk(error, path)
        result.failed[title] = write_reason(error)
    else:
        result.add(title, received)
    meter.next_file(entry.size)


def _refuse_full_disk(error: OSError, path: str) -> None:
    if error.errno in DISK_FULL:
        error.filename = path
        raise BackendError(file_error(error)) from None


def copy_to_stdout(source: OpenSource, report: Callable[[int], None]) -> CopyResult:
    """Write a file to standard output, once all of it has arrived.

    Raises:
        Unreachable: the connection ended.
        BackendError: the disk of temporary files is full.
    """
    result = CopyResult()
    with tempfile.TemporaryFile(buffering=0) as file:
        received = _receive(source.files, "", file, Meter(report))
        result.add(source.name, received)
        if not result.failed:
            file.seek(0)
            while data := file.read(1 << 20):
                sys.stdout.buffer.write(data)
            sys.stdout.flush()
    return result


def _receive(files: TaskFiles, name: str, file: Any, meter: Meter) -> _Received:
    """Receive what is missing of a file; all of it, if it changes meanwhile."""
    count = 0
    for _ in range(_ATTEMPTS):
        held = held_content(file)
        begin = files.read(name, held.size, held.sha256)
        content = held.content if begin.offset else hashlib.sha256()
        file.seek(begin.offset)
        file.truncate()
        position = begin.offset
        for part in files.parts(begin):
            meter.show(position)
            content.update(part)
            _write(file, part)
            position += len(part)
        meter.show(position)
        count += position - begin.offset
        end = files.end()
        if end.state in COMPLETE and end.sha256 != content.hexdigest():
            end = ContentEnd(CHANGED, reason="it does not arrive as it was sent")
        if end.state != CHANGED:
            break
        file.truncate(0)
    return _Received(end, begin.size, count)


def _write(file: Any, data: memoryview) -> None:
    """Write all of it. An error ends the whole copy, because the rest of the file would still arrive."""
    try:
        while data:
            data = data[file.write(data) :]
    except OSError as error:
        error.filename = "the copy"
        raise BackendError(file_error(error)) from None
