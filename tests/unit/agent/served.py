"""A controller behind its server, for the tests of its calls."""

import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.simulation import Launcher
from tests.waiting import PATIENCE
from tfdeploy.agent.control.controller import Controller
from tfdeploy.agent.control.controller_server import Server
from tfdeploy.agent.record.record import Record
from tfdeploy.agent.wire.rpc import Client

TOKEN = "0123456789abcdef" * 2
"""As long as a real one."""


class Served:
    def __init__(self, folder: Path) -> None:
        (folder / "token").write_text(TOKEN + "\n")
        self.controller = Controller(Record(folder / "record"))
        self.server = Server("127.0.0.1:0", folder / "token", self.controller)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def client(self, token: str = TOKEN) -> Client:
        return Client(f"127.0.0.1:{self.port}", token, 10.0)

    def raw(self, head: str, body: bytes = b"") -> bytes:
        """What the server sends after these bytes, until it closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE) as connection:
            connection.sendall(head.replace("\n", "\r\n").encode("latin-1") + b"\r\n\r\n" + body)
            received = b""
            while part := connection.recv(4096):
                received += part
            return received


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.server.shutdown()
    made.server.server_close()


class Responses:
    """A controller that gives these responses, raises those that are errors, and then does not respond any more."""

    def __init__(self, *responses: Any) -> None:
        self.responses = list(responses)
        self.made: list[str] = []

    def __enter__(self) -> "Responses":
        return self

    def __exit__(self, *_: object) -> None:
        return

    def call(self, method: str, path: str, body: bytes = b"") -> bytes:
        raise NotImplementedError

    def json(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        self.made.append(f"{method} {path}")
        response: Any = self.responses.pop(0) if self.responses else ConnectionError()
        if isinstance(response, Exception):
            raise response
        return dict(response)


REPORT = Launcher("worker-0").report().to_dict()


def body_of(data: Any) -> bytes:
    return json.dumps(data).encode() if data is not None else b""
