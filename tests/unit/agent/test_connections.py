"""There is a limit of connections, and of their silence; a task keeps out no other."""

import socket
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served
from tests.waiting import PATIENCE, until
from tfdeploy.agent.control import controller_server
from tfdeploy.agent.wire.rpc import TOKEN_HEADER, task_token

HEAD = b"POST /sync HTTP/1.1\r\nContent-Length: 9\r\nX-Another: "
TRUSTED = f"GET /stopped HTTP/1.1\r\n{TOKEN_HEADER}: {TOKEN}\r\n\r\n".encode()


@pytest.mark.parametrize("sends", [b"", b"P", HEAD, HEAD + b"x\r\n\r\n"])
def test_a_stranger_may_be_silent_for_a_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: bytes) -> None:
    monkeypatch.setattr(controller_server._Handler, "timeout", 0.5)
    served = Served(tmp_path)
    with (
        closing(socket.create_connection(("127.0.0.1", served.port), PATIENCE)) as connection,
        closing(socket.create_connection(("127.0.0.1", served.port), PATIENCE)) as trusted,
    ):
        trusted.sendall(TRUSTED)
        assert b"200" in trusted.recv(1000)
        connection.sendall(sends)
        with suppress(ConnectionResetError):
            while connection.recv(1000):
                pass
        trusted.settimeout(0.5)
        with pytest.raises(TimeoutError):
            assert trusted.recv(1000) == b"more"
    served.server.shutdown()
    served.server.server_close()


def test_where_no_place_is_left_a_connection_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(controller_server, "MAX_CONNECTIONS", 1)
    served = Served(tmp_path)
    with served.client(task_token(TOKEN, "worker-0")) as first:
        first.json("POST", "/sync", REPORT)
        with served.client() as second, pytest.raises(ConnectionError):
            second.call("GET", "/stopped")
        first.json("POST", "/sync", REPORT)
    until(lambda: answers(served), "the place is free again")
    served.server.shutdown()
    served.server.server_close()


def answers(served: Served) -> bool:
    with served.client() as user:
        try:
            return bool(user.json("GET", "/stopped"))
        except OSError:
            return False
