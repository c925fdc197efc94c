"""A spool is sent when it has changed, and not read before."""

import threading
import time
from pathlib import Path
from typing import Any, cast

import pytest

from tests.waiting import until
from tfdeploy.agent.record import log_segments
from tfdeploy.agent.record.log_lines import NAMES, STDOUT, Log, Reader, entry
from tfdeploy.agent.transport import log_shipper
from tfdeploy.agent.transport.log_shipper import Shipper
from tfdeploy.agent.transport.rpc import CallError, Client

LINES = 20


class Controller:
    """Takes what is sent, if it responds."""

    def __init__(self) -> None:
        self.responds = True
        self.received = b""
        self.refused = 0

    def json_bytes(self, _method: str, path: str, data: bytes) -> dict[str, Any]:
        """The call for one part of a stream."""
        if not self.responds:
            self.refused += 1
            raise CallError("busy")
        if path.split("/")[-2] == "stdout":
            self.received += data
        return {"end": int(path.split("/")[-1]) + len(data)}

    def json(self, _method: str, _path: str) -> dict[str, int]:
        """The call for the ends of the streams."""
        if not self.responds:
            self.refused += 1
            raise CallError("busy")
        return {**dict.fromkeys(NAMES, 0), "stdout": len(self.received)}


@pytest.fixture
def controller(monkeypatch: pytest.MonkeyPatch) -> Controller:
    monkeypatch.setattr(log_shipper, "_SEND_SECONDS", 0.001)
    return Controller()


def shipper(folder: Path, controller: Controller) -> Shipper:
    return Shipper(cast(Client, controller), folder, "a-run", "worker-0", dict.fromkeys(NAMES, 0))


def test_a_spool_is_read_when_it_has_changed(
    tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    ships: list[bool] = []
    ship = Shipper.ship

    def counted(self: Shipper) -> bool:
        ships.append(ship(self))
        return ships[-1]

    monkeypatch.setattr(Shipper, "ship", counted)
    spool = shipper(tmp_path, controller)
    for number in range(1, LINES + 1):
        stream = spool.log.streams["stdout"]
        stream.put(stream.end, b"a line\n")
        until(lambda number=number: controller.received == b"a line\n" * number, "the line")  # type: ignore[misc]
    spool.close()
    assert len(ships) <= 2 * LINES + 1


def test_what_could_not_be_sent_is_sent_later(tmp_path: Path, controller: Controller) -> None:
    controller.responds = False
    spool = shipper(tmp_path, controller)
    spool.log.streams["stdout"].put(0, b"a line\n")
    assert not spool.ship()
    refused = controller.refused
    until(lambda: controller.refused > refused, "the shipper's own call")
    controller.responds = True
    until(lambda: controller.received == b"a line\n", "the line")
    spool.close()


@pytest.mark.parametrize("while_it", ["has changes to clear", "sends"])
def test_a_shipper_that_is_closed_ends_whatever_its_thread_does(
    tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch, while_it: str
) -> None:
    has_reached, is_closed = threading.Event(), threading.Event()

    def hold() -> None:
        has_reached.set()
        assert is_closed.wait(60)

    class HeldLog(Log):
        def __init__(self, folder: Path) -> None:
            super().__init__(folder)
            clear, set_ = self.changed.clear, self.changed.set

            def held_clear() -> None:
                hold()
                clear()

            def noted_set() -> None:
                set_()
                if has_reached.is_set():
                    is_closed.set()

            if while_it == "has changes to clear":
                monkeypatch.setattr(self.changed, "clear", held_clear)
            monkeypatch.setattr(self.changed, "set", noted_set)

    class Endless(Controller):
        """Takes one byte a call, so that there is always something left to send."""

        def json_bytes(self, _method: str, path: str, _data: bytes) -> dict[str, Any]:
            if not has_reached.is_set():
                hold()
            self.received += b"-"
            return {"end": int(path.split("/")[-1]) + 1}

    monkeypatch.setattr(log_shipper, "Log", HeldLog)
    spool = shipper(tmp_path, controller if while_it == "has changes to clear" else Endless())
    stream = spool.log.streams["stdout"]
    stream.put(0, b"x" * 10_000_000)
    assert has_reached.wait(60)
    closing = threading.Thread(target=spool.close, daemon=True)
    closing.start()
    closing.join(15)
    assert not closing.is_alive()
    assert not spool._thread.is_alive()


class Recording(Controller):
    """Stores what it takes, as the record does."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.log = Log(folder)
        self.refused_at: list[float] = []

    def json_bytes(self, _method: str, path: str, data: bytes) -> dict[str, Any]:
        if not self.responds:
            self.refused_at.append(time.monotonic())
            raise ConnectionRefusedError
        name, position = path.split("/")[-2:]
        return {"end": self.log.streams[name].put(int(position), data)}

    def json(self, _method: str, _path: str) -> dict[str, int]:
        if not self.responds:
            self.refused_at.append(time.monotonic())
            raise ConnectionRefusedError
        return self.log.ends()


def test_a_controller_with_an_older_copy_gets_what_the_spool_has_again(tmp_path: Path, controller: Controller) -> None:
    recording = Recording(tmp_path / "record")
    spool = shipper(tmp_path / "spool", recording)
    for number in range(3):
        stream = spool.log.streams["stdout"]
        stream.put(stream.end, b"line %d\n" % number)
        until(spool.ship, "the line is sent")
        if number == 0:
            older = recording.log.ends()
    recording.responds = False
    stream.put(stream.end, b"line 3\n")
    until(lambda: recording.refused_at, "a call without a response")
    recording.log = Log(tmp_path / "older record")
    recording.log.streams["stdout"].put(0, b"line 0\n")
    assert recording.log.ends() == older
    recording.responds = True
    until(spool.ship, "the rest is sent")
    spool.close()
    copy = recording.log.streams["stdout"]
    assert copy.span(0, copy.end) == b"line 0\nline 1\nline 2\nline 3\n"
    assert spool.lost_bytes == 0


def test_what_is_printed_while_the_controller_is_away_has_a_limit_and_what_is_dropped_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_segments, "SEGMENT_BYTES", 4096)
    monkeypatch.setattr(log_shipper, "_SEND_SECONDS", 0.001)
    controller = Recording(tmp_path / "record")
    spool = Shipper(cast(Client, controller), tmp_path / "spool", "a-run", "worker-0", dict.fromkeys(NAMES, 0))

    def print_lines(first: int, last: int) -> None:
        stream, index = spool.log.streams["stdout"], spool.log.streams["index"]
        for number in range(first, last):
            line = b"line %7d\n" % number
            position = stream.end
            stream.put(position, line)
            index.put(index.end, entry(number + 1.0, STDOUT, 1 + number // 1000, position, len(line)))

    print_lines(0, 10)
    until(spool.ship, "the first lines are sent")
    controller.responds = False
    print_lines(10, 5000)
    stored = sum(path.stat().st_size for path in (tmp_path / "spool").iterdir())
    assert stored <= 2 * (log_segments.MAX_SEGMENTS + 1) * 4096
    until(lambda: len(controller.refused_at) > 8, "nine tries")
    assert controller.refused_at[8] - controller.refused_at[0] > 0.001 * sum(2**number for number in range(8)) / 2
    oldest = spool.log.streams["stdout"].start
    controller.responds = True
    until(spool.ship, "the rest is sent")
    spool.close()
    lines = list(Reader(controller.log).more())
    shown = [(int(line.text.split()[1]), line.attempt) for line in lines if line.text]
    assert shown == [(number, 1 + number // 1000) for number in range(5000 - len(shown), 5000)], "the newest, each once"
    assert len(shown) > 1000
    assert spool.lost_bytes == oldest - 10 * len(b"line       0\n")
