"""Callers without a token keep no one out, and a task keeps out no other."""

import socket
import threading
from contextlib import closing, suppress
from pathlib import Path

import pytest

from tests.unit.agent.served import REPORT, TOKEN, Served, served
from tests.waiting import until
from tfdeploy.agent.control import controller_server
from tfdeploy.agent.transport import connections
from tfdeploy.agent.transport.connections import Connections
from tfdeploy.agent.transport.rpc import CallError, task_token

__all__ = ["served"]


def stranger(served: Served, sends: bytes = b"") -> socket.socket:
    """A connection that shows no token."""
    made = socket.create_connection(("127.0.0.1", served.port), 5)
    made.sendall(sends)
    return made


def strangers(served: Served, count: int, sends: bytes = b"") -> list[socket.socket]:
    """So many of them, which all have arrived."""
    made = [stranger(served, sends) for _ in range(count)]
    until(lambda: served.server.connections.strangers == count, "all are connected")
    return made


HEAD = b"POST /sync HTTP/1.1\r\nContent-Length: 9\r\nX-Another: "


@pytest.mark.parametrize("sends", [b"", b"P", HEAD, HEAD + b"x\r\n\r\n"])
def test_callers_without_a_token_keep_no_one_out(served: Served, monkeypatch: pytest.MonkeyPatch, sends: bytes) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 5)
    made = strangers(served, 5, sends)
    with served.client() as client, served.client(task_token(TOKEN, "worker-0")) as launcher:
        for _ in range(3):
            client.call("GET", "/stopped")
            launcher.json("POST", "/sync", REPORT)
        assert served.server.connections.strangers == 4
    made[0].settimeout(5)
    with suppress(ConnectionResetError):
        made[0].recv(1000)  # the response to a body that has not arrived, or nothing
    for connection in made:
        connection.close()
    until(lambda: served.server.connections.strangers == 0, "all are gone")


@pytest.mark.parametrize("sends", [b"", HEAD, HEAD + b"x\r\n\r\n"])
def test_a_caller_without_a_token_has_a_time_for_all_that_it_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sends: bytes
) -> None:
    monkeypatch.setattr(controller_server, "STRANGER_SECONDS", 0.5)
    served = Served(tmp_path)
    with closing(stranger(served, sends)) as connection:

        def is_closed() -> bool:
            """Whether the connection is closed, although a byte arrives again and again."""
            try:
                connection.sendall(b"x")
            except OSError:
                return True
            return False

        until(is_closed, "the connection is closed")
    served.server.shutdown()
    served.server.server_close()


def test_of_many_callers_without_a_token_the_oldest_of_the_most_crowded_address_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    pairs = {name: socket.socketpair() for name in ("user", "first", "second", "third")}
    places = Connections()
    for name, (end, _) in pairs.items():
        assert places.admit(end, ("10.0.0.1" if name == "user" else "10.0.0.2", 1))
    open_ = {name: not is_shut(other) for name, (_, other) in pairs.items()}
    assert open_ == {"user": True, "first": False, "second": True, "third": True}
    assert not places.welcome(pairs["first"][0], "worker-0", False)
    for pair in pairs.values():
        for end in pair:
            end.close()


def is_shut(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False


def test_a_task_cannot_take_the_places_of_others(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_OF_A_TASK", 2)
    own = [served.client(task_token(TOKEN, "worker-0")) for _ in range(3)]
    for client in own[:2]:
        client.json("POST", "/sync", REPORT)
    with pytest.raises(CallError, match="503 there are too many connections"):
        own[2].json("POST", "/sync", REPORT)
    with served.client() as user:
        user.call("GET", "/stopped")
    for client in own:
        client.close()


def test_a_machine_without_threads_refuses_for_a_moment_and_not_for_ever(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each such connection ends. If it was still counted, the server would refuse all others after some."""
    monkeypatch.setattr(connections, "MAX_STRANGERS", 3)
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    for _ in range(5):
        with suppress(OSError):  # closed before all was sent
            assert served.raw("GET /stopped HTTP/1.1") == b""
    monkeypatch.setattr(threading.Thread, "start", start)
    with served.client() as client:
        assert client.json("GET", "/stopped") == {"stopped": True}
