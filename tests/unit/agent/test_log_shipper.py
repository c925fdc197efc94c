"""A spool is sent when it has changed, and not read before."""

import time
from pathlib import Path
from typing import Any, cast

import pytest

from tests.waiting import until
from tfdeploy.agent.record import output
from tfdeploy.agent.record.output import Log, Reader
from tfdeploy.agent.record.output_lines import STDOUT, Part, encode
from tfdeploy.agent.wire import log_shipper
from tfdeploy.agent.wire.log_shipper import Shipper
from tfdeploy.agent.wire.rpc import Client

INSTANCE = "a" * 32


class Controller:
    """Stores what is sent, as the record does, if it responds."""

    def __init__(self, folder: Path) -> None:
        self.responds = True
        self.log, self.apart = Log(folder), Log(folder / "apart")
        self.refused: list[float] = []

    def json_bytes(self, _method: str, path: str, data: bytes) -> dict[str, Any]:
        """The call for lines of a piece."""
        self.refuse()
        kind, first, at, instance = path.split("/")[-4:]
        assert instance == INSTANCE
        return {"end": (self.log if kind == "own" else self.apart).store(int(first), int(at), data)}

    def json(self, _method: str, path: str) -> dict[str, Any]:
        """The call for the list of the pieces."""
        assert path == "/log/a-run/worker-0"
        self.refuse()
        return {"pieces": self.log.sizes()}

    def refuse(self) -> None:
        """A call while it does not respond."""
        if not self.responds:
            self.refused.append(time.monotonic())
            raise ConnectionRefusedError

    def received(self) -> bytes:
        return self.log.printed(STDOUT)


@pytest.fixture
def controller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Controller:
    monkeypatch.setattr(log_shipper, "_SEND_SECONDS", 0.001)
    return Controller(tmp_path / "record")


def shipper(folder: Path, controller: Controller) -> Shipper:
    return Shipper(cast(Client, controller), folder, "a-run", "worker-0", INSTANCE)


def line(text: bytes, attempt: int = 1) -> bytes:
    return encode(Part(1.0, STDOUT, attempt, text, True))


def test_a_controller_with_an_older_copy_gets_what_the_spool_has_again(tmp_path: Path, controller: Controller) -> None:
    spool = shipper(tmp_path / "spool", controller)
    for number in range(3):
        spool.log.write(line(b"line %d" % number))
        until(spool.ship, "the line is sent")
    controller.responds = False
    spool.log.write(line(b"line 3"))
    until(lambda: controller.refused, "a call without a response")
    controller.log = Log(tmp_path / "older record")
    controller.log.store(0, 0, line(b"line 0"))
    controller.responds = True
    until(spool.ship, "the rest is sent")
    spool.close()
    assert controller.received() == b"line 0\nline 1\nline 2\nline 3\n"
    assert spool.log.lost_bytes == 0


def test_a_launcher_elsewhere_continues_after_what_the_controller_has(tmp_path: Path, controller: Controller) -> None:
    for number in range(3):
        spool = shipper(tmp_path / f"spool {number}", controller)
        spool.log.write(line(b"line %d" % number))
        until(spool.ship, "the line is sent")
        spool.close()
    assert controller.received() == b"line 0\nline 1\nline 2\n"
    spool = shipper(tmp_path / "spool 0", controller)
    spool.log.write(line(b"on the first machine again"))
    until(spool.ship, "the line is sent")
    spool.close()
    assert controller.received() == b"line 0\nline 1\nline 2\non the first machine again\n"


def test_two_machines_that_begin_at_the_same_place_lose_nothing(tmp_path: Path, controller: Controller) -> None:
    first = shipper(tmp_path / "first", controller)
    first.close()
    first.log.write(line(b"never sent") * 30)
    second = shipper(tmp_path / "second", controller)
    second.log.write(line(b"from elsewhere"))
    until(second.ship, "the line is sent")
    second.close()
    for _ in range(2):
        first = shipper(tmp_path / "first", controller)
        first.log.write(line(b"later"))
        until(first.ship, "all is sent")
        first.close()
    assert [each.text for each in Reader(controller.log).more()] == ["from elsewhere", "later", "later"]
    assert controller.apart.printed(STDOUT) == b"never sent\n" * 30
    assert first.log.pieces() != [0], "what has arrived apart is deleted"


def test_only_whole_lines_travel(tmp_path: Path, controller: Controller) -> None:
    spool = shipper(tmp_path / "spool", controller)
    whole, torn = line(b"whole"), line(b"torn")
    spool.log.write(whole + torn[:-3])
    until(spool.ship, "it is sent")
    assert controller.log.path(0).read_bytes() == whole
    spool.log.write(torn[-3:])
    until(lambda: spool.ship() and controller.received() == b"whole\ntorn\n", "the rest")
    spool.close()


def test_what_is_printed_while_the_controller_is_away_has_a_limit_and_what_is_dropped_is_counted(
    tmp_path: Path, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "PIECE_BYTES", 4096)
    monkeypatch.setattr(output, "MAX_PIECES", 16)
    spool = shipper(tmp_path / "spool", controller)

    def print_lines(first: int, last: int) -> None:
        for number in range(first, last):
            spool.log.write(line(b"line %7d" % number, 1 + number // 1000))

    print_lines(0, 10)
    until(spool.ship, "the first lines are sent")
    controller.responds = False
    print_lines(10, 5000)
    stored = sum(path.stat().st_size for path in (tmp_path / "spool/a-run").iterdir())
    assert stored <= 17 * 4096
    until(lambda: len(controller.refused) > 8, "nine tries")
    assert controller.refused[8] - controller.refused[0] > 0.001 * sum(2**number for number in range(8)) / 2
    oldest = spool.log.pieces()[0]
    controller.responds = True
    until(spool.ship, "the rest is sent")
    spool.close()
    lines = list(Reader(controller.log).more())[10:]
    shown = [(int(line.text.split()[1]), line.attempt) for line in lines]
    assert shown == [(number, 1 + number // 1000) for number in range(5000 - len(shown), 5000)], "the newest, each once"
    assert len(shown) > 1000
    assert spool.log.lost_bytes == len(b"line       0\n") * (oldest // len(line(b"line       0")) - 10)
    assert len(spool.log.pieces()) == 1, "what has arrived is deleted"
