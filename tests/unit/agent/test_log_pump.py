"""A program's output is read whatever the disk does; what is not stored is counted."""

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import until
from tfdeploy.agent.launch import log_pump
from tfdeploy.agent.launch.log_pump import Pump
from tfdeploy.agent.record.output import Reader, Spool
from tfdeploy.agent.record.output_lines import STDOUT

LINE = b"x" * 99 + b"\n"
FORMED = len(LINE) + len("2026-11-28T07:44:37.123456Z stdout F:1 ")
SECONDS = 30.0


class Disk:
    """What the spool writes to. When it is full, a write stores what has room."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        append, disk = Spool._append, self

        def limited(spool: Spool, first: int, data: bytes) -> int:
            part = data if disk.room is None else data[: disk.room]
            disk.room = None if disk.room is None else disk.room - len(part)
            return append(spool, first, part)

        patch.setattr(Spool, "_append", limited)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


class Program:
    """Two pipes with a pump at their ends."""

    def __init__(self, folder: Path) -> None:
        self.log = Spool(folder, {})
        (out, self._out), (err, self._err) = os.pipe(), os.pipe()
        self.pump = Pump(self.log, os.fdopen(out, "rb"), os.fdopen(err, "rb"), 1)

    def print(self, data: bytes) -> None:
        """Write to stdout; fails the test when nobody reads."""
        writer = threading.Thread(target=self.write, args=(data,), daemon=True)
        writer.start()
        writer.join(SECONDS)
        assert not writer.is_alive(), "the program blocks"

    def write(self, data: bytes) -> None:
        """Write to stdout; blocks while the pipe is full."""
        while data:
            data = data[os.write(self._out, data) :]

    def end(self) -> None:
        os.close(self._out)
        os.close(self._err)
        self.pump.finish(SECONDS)

    def stored(self) -> bytes:
        return self.log.printed(STDOUT)

    def lines(self) -> Iterator[bytes]:
        return (line.content + b"\n" for line in Reader(self.log).more() if line.pipe == STDOUT)


@pytest.mark.parametrize("room", [0, 1, 150])
def test_a_disk_full_for_a_moment_blocks_no_program_and_loses_nothing(tmp_path: Path, disk: Disk, room: int) -> None:
    program = Program(tmp_path)
    program.print(b"before\n")
    until(lambda: program.stored() == b"before\n", "the first line", SECONDS)
    disk.room = room
    program.print(LINE * 10_000)
    disk.room = None
    program.print(b"after\n")
    program.end()
    whole = b"before\n" + LINE * 10_000 + b"after\n"
    assert program.stored() == whole
    assert b"".join(program.lines()) == whole
    assert program.pump.dropped == 0


def test_what_has_no_room_is_dropped_and_counted(tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_pump, "MAX_PENDING", 100_000)
    program = Program(tmp_path)
    count = 100_000 // FORMED
    dropped = (5_000 - count) * len(LINE)
    disk.room = 0
    program.print(LINE * 5_000)
    until(lambda: program.pump._count == dropped, "the pump has read all of it", SECONDS)
    disk.room = None
    until(lambda: program.pump.dropped == dropped, "the count", SECONDS)
    program.print(b"after\n")
    program.end()
    assert program.stored() == LINE * count + b"after\n"
    assert program.pump.dropped == dropped


def test_what_waits_at_the_programs_end_is_dropped_when_the_disk_stays_full(
    tmp_path: Path, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_pump, "STORE_SECONDS", 0.1)
    program = Program(tmp_path)
    disk.room = FORMED + 50
    program.print(LINE * 10)
    program.end()
    assert program.log.path(0).read_bytes()[-len(LINE) :] == LINE, "a part of a line is cut off"
    assert program.stored() == LINE
    assert program.pump.dropped == 9 * len(LINE)


def test_a_disk_that_fails_for_a_moment_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise OSError(errno.EIO, "Input/output error")

    program = Program(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(Spool, "pieces", fail)
        program.print(LINE * 10_000)
    program.print(b"after\n")
    program.end()
    assert program.stored() == LINE * 10_000 + b"after\n"
    assert program.pump.dropped == 0


@pytest.mark.parametrize("text", [b"\r10%", b"no newline at the end"])
def test_what_waits_for_its_newline_is_stored_while_the_program_runs(tmp_path: Path, text: bytes) -> None:
    program = Program(tmp_path)
    program.print(text)
    until(lambda: program.stored() == text, "the part", SECONDS)
    assert b" P:1 " in program.log.path(0).read_bytes()
    program.end()


def test_a_pump_that_fails_closes_the_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda args: None)
    monkeypatch.setattr(Pump, "_add", lambda *args: 1 / 0)
    program = Program(tmp_path)
    with pytest.raises(BrokenPipeError):
        program.write(LINE * 100_000)
    program.end()
