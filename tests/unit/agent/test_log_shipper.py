"""A spool is sent when it has changed, and not read before."""

from pathlib import Path
from typing import Any, cast

import pytest

from tests.waiting import until
from tfdeploy.agent.record.log_lines import NAMES
from tfdeploy.agent.transport import log_shipper
from tfdeploy.agent.transport.log_shipper import Shipper
from tfdeploy.agent.transport.rpc import CallError, Client

LINES = 20


class Controller:
    """Takes what is sent, if it responds."""

    def __init__(self) -> None:
        self.responds = True
        self.received = b""

    def json_bytes(self, _method: str, path: str, data: bytes) -> dict[str, Any]:
        """The call for one part of a stream."""
        if not self.responds:
            raise CallError("busy")
        if path.split("/")[-2] == "stdout":
            self.received += data
        return {"end": int(path.split("/")[-1]) + len(data)}


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
    controller.responds = True
    until(lambda: controller.received == b"a line\n", "the line")
    spool.close()
